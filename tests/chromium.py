"""A real Chromium, driven over the pipe of its DevTools protocol: no driver and no package needed."""

import json
import os
import select
import shutil
import subprocess
import time

PATH = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Chromium:
    """A headless browser; messages are JSON ended by a zero byte, on the browser's descriptors 3 and 4."""

    def __init__(self, profile):
        browser_in, self.send_to = os.pipe()
        self.read_from, browser_out = os.pipe()
        flags = "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --remote-debugging-pipe"
        command = f'exec "{PATH}" {flags} --user-data-dir="{profile}" about:blank 3<&{browser_in} 4>&{browser_out}'
        self.process = subprocess.Popen(
            ["bash", "-c", command],
            pass_fds=(browser_in, browser_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(browser_in)
        os.close(browser_out)
        self.buffer, self.number, self.events, self.session = b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=1400, height=1000, deviceScaleFactor=1, mobile=False)

    def _message(self, deadline):
        while b"\0" not in self.buffer:
            ready = select.select([self.read_from], [], [], max(0.0, deadline - time.monotonic()))[0]
            if not ready:
                raise TimeoutError("Chromium does not answer")
            data = os.read(self.read_from, 1 << 20)
            if not data:
                raise ConnectionError("Chromium ended")
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(line)

    def call(self, method, **parameters):
        """Send a command and wait for its answer; events on the way are kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.send_to, data) :]
        deadline = time.monotonic() + 60
        while True:
            answer = self._message(deadline)
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def open(self, address, ready="document.documentElement?.dataset.ready === 'yes'"):
        """Load a page and wait until its script has run."""
        self.events.clear()
        self.call("Page.navigate", url=address)
        self.wait(f"location.href === {json.dumps(address)} && {ready}")

    def show(self, width, scheme):
        """The size of the window, and whether the system is light or dark."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=1000, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def value(self, expression):
        """What an expression gives in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, expression, seconds=30):
        """Wait until an expression is true."""
        deadline = time.monotonic() + seconds
        while not self.value(f"Boolean({expression})"):
            assert time.monotonic() < deadline, f"never true: {expression}; {self.complaints()}"
            time.sleep(0.05)

    def _place(self, selector, across, down):
        self.value(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center'}})")
        box = self.value(f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect(); "
                         "return [b.left, b.top, b.width, b.height]; })()")  # fmt: skip
        return {"x": box[0] + across * box[2], "y": box[1] + down * box[3]}

    def hover(self, selector, across=0.5, down=0.5):
        """Move the mouse over an element."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", **self._place(selector, across, down))

    def click(self, selector):
        """Click an element."""
        place = self._place(selector, 0.5, 0.5)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)

    def key(self, name):
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name)

    def complaints(self):
        """Errors and warnings of the console, uncaught exceptions, dialogs, and addresses other than the page's own."""
        self.value("1")  # whatever is under way arrives first
        found = []
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown" or method == "Page.javascriptDialogOpening":
                found.append(parameters)
            elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"]["text"])
            elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
                found.append(parameters)
            elif method == "Network.requestWillBeSent":
                address = parameters["request"]["url"]
                if not address.startswith(("file:///", "http://127.0.0.1:", "data:")):
                    found.append(address)
        return found

    def close(self):
        """End the browser."""
        self.process.terminate()
        self.process.wait(timeout=20)
        os.close(self.send_to)
        os.close(self.read_from)
