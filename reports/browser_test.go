package reports

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// screenshots is the directory to which the tests write screenshots of pages. If it is empty, the
// tests write none.
var screenshots = flag.String("screenshots", "", "the `directory` to leave screenshots of the page in")

// browsers has the names that Linux distributions give Chromium's executable.
var browsers = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// pageWithin is the time limit of every browser action.
const pageWithin = time.Minute

// visitor is a report page that a test has opened in a browser.
type visitor struct {
	t   *testing.T
	ctx context.Context
	// consoleMessages returns the messages on the page's console.
	consoleMessages func() []string
}

// visit opens the HTML file at path in a new browser. It skips the test if there is no browser.
func visit(t *testing.T, path string, width, height int) *visitor {
	t.Helper()
	executable := ""
	for _, name := range browsers {
		if found, err := exec.LookPath(name); err == nil {
			executable = found
			break
		}
	}
	if executable == "" {
		t.Skipf("no browser to open the page in: expected one of %s on the PATH", strings.Join(browsers, ", "))
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(executable),
		chromedp.WindowSize(width, height), chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(pageWithin),
		chromedp.Env("TMPDIR="+t.TempDir())) // the default directory would keep the browser's temporary files
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil { // starts the browser, which runs until ctx ends
		t.Fatalf("starting %s: %v", executable, err)
	}
	v := &visitor{t: t, ctx: ctx}
	messages, stop := context.WithCancel(ctx)
	console := chromedp.Console(messages)
	v.do(chromedp.Navigate("file://" + path))
	v.consoleMessages = func() []string {
		var all []string
		stop()
		for message, err := range console {
			if err != nil {
				break
			}
			all = append(all, message.String())
		}
		return all
	}
	return v
}

// do executes browser actions. The test fails if an action fails.
func (v *visitor) do(actions ...chromedp.Action[chromedp.Void]) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, pageWithin)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		v.t.Fatal(err)
	}
}

// ask evaluates a JavaScript expression in the page and returns the value.
func ask[T any](v *visitor, expression string) T {
	v.t.Helper()
	got, err := chromedp.Run(v.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		v.t.Fatalf("%s: %v", expression, err)
	}
	return got
}

// await waits until a JavaScript expression is true in the page.
func (v *visitor) await(expression string) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, pageWithin)
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(pageWithin))); err != nil {
		v.t.Fatalf("waiting for %s: %v", expression, err)
	}
}

// screenshot writes a screenshot of the page if the flag -screenshots is set.
func (v *visitor) screenshot(name string) {
	v.t.Helper()
	if *screenshots == "" {
		return
	}
	taken, err := chromedp.Run(v.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(*screenshots, name+".png"), taken, 0o644)
	}
	if err != nil {
		v.t.Fatal(err)
	}
}

// dark makes the browser prefer the dark theme.
func (v *visitor) dark() {
	v.t.Helper()
	v.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
		})
		return err
	}))
}

// open writes the report page of the given runs and opens the page in a browser.
func open(t *testing.T, width, height int, runs ...Run) *visitor {
	t.Helper()
	dir := t.TempDir()
	if err := WriteFiles(dir, runs...); err != nil {
		t.Fatal(err)
	}
	return visit(t, filepath.Join(dir, PageName), width, height)
}
