// Pages that are opened as files may not start a worker. The search's worker then runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inner = frame.contentWindow, script = frame.contentDocument.createElement("script");
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.loaded = new Promise((done) => { script.onload = done; });
      this.postMessage = (data) => this.loaded.then(() => inner.dispatchEvent(new inner.MessageEvent("message", { data })));
      script.src = address;
      frame.contentDocument.body.append(script);
    }
  };
}
