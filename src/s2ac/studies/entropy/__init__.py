"""The entropy study: does the density that SVGD's particles carry tell their entropy?"""
