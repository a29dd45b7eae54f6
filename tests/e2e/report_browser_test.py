"""partita simulate --html in a real browser, Debian's headless Chromium: nothing on the console, no request except for the file
itself, every section with its tables and drawings, nothing wider than the page at 1280 and 400 pixels, zoom works. `./bazelw test
//tests:long` installs Chromium. With the argument --screenshots FOLDER it saves screenshots.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

PARTITA = os.path.abspath("compiler/tools/partita")
GPT2 = os.path.abspath("tests/data/onnx-tiny/gpt2_4l/model_train.onnx")
CHROMIUM = shutil.which("chromium")
CLUSTER = "8x a100-80-sxm"
SECTIONS = ["Where the time goes", "Timeline", "Memory over time", "Collectives and transfers", "Most expensive operations",
            "The plan and its runners-up"]
SCREENSHOTS = sys.argv[sys.argv.index("--screenshots") + 1] if "--screenshots" in sys.argv else None


class Browser:
    """Controls Chromium through its debugging protocol over two pipes; messages are JSON with a final zero byte."""

    def __init__(self, profile):
        command, events = os.pipe(), os.pipe()
        self.process = subprocess.Popen(
            ["bash", "-c", 'exec "$@" 3<&%d 4>&%d' % (command[0], events[1]), "chromium", CHROMIUM, "--headless", "--no-sandbox",
             "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--remote-debugging-pipe",
             "--user-data-dir=" + profile, "about:blank"],
            pass_fds=(command[0], events[1]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(command[0])
        os.close(events[1])
        self.input, self.output = os.fdopen(command[1], "wb", 0), os.fdopen(events[0], "rb", 0)
        self.buffer, self.count, self.events, self.session = b"", 0, [], None

    def read(self):
        while b"\0" not in self.buffer:
            more = self.output.read(1 << 16)
            if not more:
                raise RuntimeError("chromium ended with %s" % self.process.wait())
            self.buffer += more
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.count += 1
        request = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        self.input.write(json.dumps(request).encode() + b"\0")
        while True:
            message = self.read()
            if message.get("id") == self.count:
                if "error" in message:
                    raise RuntimeError("%s: %s" % (method, message["error"]))
                return message["result"]
            self.events.append(message)

    def open(self, path, width):
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Network", "Page"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        self.events = []
        self.call("Page.navigate", url="file://" + path)
        end = time.time() + 60
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            if time.time() > end:
                raise RuntimeError("the page does not load")
            self.call("Runtime.evaluate", expression="0")

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def close(self):
        self.session = None
        try:
            self.call("Browser.close")
        except (RuntimeError, BrokenPipeError):
            pass
        self.process.wait(timeout=30)


class ReportBrowserTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not CHROMIUM:
            raise RuntimeError("expected chromium, found none: apt-get install chromium")
        cls.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        cls.addClassCleanup(cls.folder.cleanup)
        model = [GPT2, "--dim", "batch=16,seq=8"]
        cls.choice = json.loads(cls.partita("plan", *model, "--cluster", CLUSTER, "--fix", "pp=2,tp=2", "-o", "plan.yaml", "--json"))
        with open(os.path.join(cls.folder.name, "choice.json"), "w", encoding="utf-8") as file:
            json.dump(cls.choice, file)
        cls.partita("compile", *model, "--plan", "plan.yaml", "--train", "adamw", "-o", "step.partita")
        cls.partita("simulate", "step.partita", "--cluster", CLUSTER, "--html", "report.html", "--choice", "choice.json")
        cls.page = os.path.join(cls.folder.name, "report.html")
        cls.browser = Browser(os.path.join(cls.folder.name, "profile"))
        cls.addClassCleanup(cls.browser.close)

    @classmethod
    def partita(cls, *arguments):
        return subprocess.run([PARTITA, *arguments], check=True, capture_output=True, text=True, cwd=cls.folder.name).stdout

    def look(self, width):
        self.browser.open(self.page, width)
        if SCREENSHOTS:
            shot = self.browser.call("Page.captureScreenshot", captureBeyondViewport=True)
            with open(os.path.join(SCREENSHOTS, "report-%d.png" % width), "wb") as file:
                file.write(base64.b64decode(shot["data"]))

    def test_pages(self):
        for width in (1280, 400):
            with self.subTest(width=width):
                self.look(width)
                self.check_quiet()
                self.check_sections()
                self.check_nothing_overlaps(width)

    def check_quiet(self):
        for event in self.browser.events:
            method, parameters = event["method"], event.get("params", {})
            self.assertNotIn(method, ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"), parameters)
            if method == "Network.requestWillBeSent":
                self.assertEqual(parameters["request"]["url"], "file://" + self.page)

    def check_sections(self):
        evaluate = self.browser.evaluate
        self.assertEqual(evaluate("[...document.querySelectorAll('h2')].map(x => x.textContent)"), SECTIONS)
        # Two pipeline stages, each with a row for its time breakdown, timetable and memory.
        self.assertEqual(evaluate("[...document.querySelectorAll('.rows')].map(x => x.querySelectorAll('.names div').length)"), [2, 2])
        self.assertGreater(evaluate("document.querySelectorAll('#timeline rect').length"), 20)
        self.assertEqual(evaluate("document.querySelectorAll('polyline').length"), 2)
        rows = evaluate("[...document.querySelectorAll('table')].map(x => x.querySelectorAll('tr').length - 1)")
        self.assertEqual(len(rows), 4)
        self.assertGreaterEqual(min(rows), 2)
        self.assertEqual(rows[2], 1 + len(self.choice["alternatives"]))
        # Every collective lists its reason.
        reasons = evaluate("[...document.querySelectorAll('table')[0].querySelectorAll('tr td:nth-child(2)')]"
                           ".map(x => x.querySelector('small') ? x.querySelector('small').textContent : '')")
        self.assertEqual(len(reasons), rows[0])
        self.assertNotIn("", reasons)
        self.assertIn(self.choice["division"], evaluate("document.querySelector('tr.chosen').textContent"))
        self.assertEqual(evaluate("document.querySelector('pre').textContent"), self.choice["text"])
        self.assertNotRegex(evaluate("document.body.innerText"), r"\b(nan|inf|NaN|undefined)\b")
        # Zoom widens the timetable, not the page.
        before = evaluate("document.getElementById('timeline').getBoundingClientRect().width")
        evaluate("document.querySelectorAll('button')[0].click()")
        self.assertAlmostEqual(evaluate("document.getElementById('timeline').getBoundingClientRect().width"), 2 * before, delta=1)

    def check_nothing_overlaps(self, width):
        evaluate = self.browser.evaluate
        self.assertLessEqual(evaluate("document.documentElement.scrollWidth"), width)
        # Neighbouring elements must not overlap.
        self.assertEqual(evaluate("""(() => {
            const wrong = [], blocks = [...document.body.children].filter(x => x.getBoundingClientRect().height > 0);
            for (let i = 1; i < blocks.length; ++i)
              if (blocks[i].getBoundingClientRect().top < blocks[i - 1].getBoundingClientRect().bottom - 1)
                wrong.push(blocks[i].outerHTML.slice(0, 80));
            for (const rows of document.querySelectorAll('.rows'))
              if (rows.children[1].getBoundingClientRect().left < rows.children[0].getBoundingClientRect().right - 1)
                wrong.push('rows');
            for (const cell of document.querySelectorAll('td, th, .fact'))
              if (cell.scrollWidth > cell.clientWidth + 1) wrong.push(cell.outerHTML.slice(0, 80));
            return wrong; })()"""), [])


if __name__ == "__main__":
    if SCREENSHOTS:
        SCREENSHOTS = os.path.abspath(SCREENSHOTS)
        first = sys.argv.index("--screenshots")
        del sys.argv[first:first + 2]
    sys.exit(unittest.main(verbosity=1))
