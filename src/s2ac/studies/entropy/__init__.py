"""The entropy study: does the density that SVGD's particles carry give their entropy?"""
