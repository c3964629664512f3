package reports

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/kube-gauntlet/gauntlet/reports/timeline"
)

// Log is a part of a file.
type Log struct {
	Name string // with the directory that it is in
	Text string
	// Component part it is, in words; empty if it is all of it.
	Component string
}

// maxLogPart is how much of each log is on the page, in bytes.
const maxLogPart = 16 << 10

// readTail reads the last whole lines of a file.
func readTail(path string) (Log, error) {
	file, err := os.Open(path)
	if err != nil {
		return Log{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return Log{}, err
	}
	log := Log{Name: nameOf(path)}
	omitted := max(info.Size()-maxLogPart, 0)
	content, err := io.ReadAll(io.NewSectionReader(file, omitted, maxLogPart))
	if err != nil {
		return Log{}, err
	}
	if i := bytes.IndexByte(content, '\n'); omitted > 0 && i >= 0 {
		content, omitted = content[i+1:], omitted+int64(i)+1
	}
	if omitted > 0 {
		log.Component = fmt.Sprintf("The end of it; %d bytes come before.", omitted)
	}
	log.Text = validUTF8(content)
	return log, nil
}

// validUTF8 is what a page can show of a file, whatever is in it.
func validUTF8(content []byte) string { return string(bytes.ToValidUTF8(content, []byte("\uFFFD"))) }

// nameOf is a file's name with the directory that it is in.
func nameOf(path string) string {
	return filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path))
}

// logWindow is the time that a page shows logs of.
type logWindow struct{ from, to time.Time }

// How much of the logs is shown around the first violation: what led to it, and
// what the subject made of it.
const (
	before = 3 * time.Second
	after  = time.Second
)

// logWindowAround is the time around the first violation of a run; nil if there is none.
func logWindowAround(t *timeline.Timeline) *logWindow {
	if t == nil || len(t.Violations) == 0 {
		return nil
	}
	first := t.Violations[0].At
	for _, v := range t.Violations {
		first = min(first, v.At)
	}
	at := t.Start.Time.Add(first)
	return &logWindow{at.Add(-before), at.Add(after)}
}

// read reads what a log has of a window; lines without a time belong to the one
// before them. What does not fit is the beginning.
func (w *logWindow) read(path string) (Log, error) {
	file, err := os.Open(path)
	if err != nil {
		return Log{}, err
	}
	defer file.Close()
	var kept []byte
	within := false
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if at, ok := timeOf(line, w.from); ok {
			within = !at.Before(w.from) && !at.After(w.to)
		}
		if within {
			kept = append(kept, line...)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return Log{}, err
		}
	}
	if omitted := len(kept) - maxLogPart; omitted > 0 {
		kept = kept[omitted:]
		kept = kept[bytes.IndexByte(kept, '\n')+1:]
	}
	return Log{
		Name:      nameOf(path),
		Component: fmt.Sprintf("From %s before the first violation to %s after it.", before, after),
		Text:      validUTF8(kept),
	}, nil
}

// How lines of logs begin: klog's, which tell neither year nor zone, and those in
// JSON.
var (
	klogTime = regexp.MustCompile(`^[IWEF](\d{4} \d\d:\d\d:\d\d\.\d+)`)
	jsonTime = regexp.MustCompile(`"(?:ts|time)":"([^"]+)"`)
)

// timeOf reads the time of a line of a log. What it does not tell is as near says.
func timeOf(line []byte, near time.Time) (time.Time, bool) {
	if found := klogTime.FindSubmatch(line); found != nil {
		at, err := time.ParseInLocation("0102 15:04:05.999999", string(found[1]), near.Location())
		return at.AddDate(near.Year(), 0, 0), err == nil
	}
	if found := jsonTime.FindSubmatch(line); found != nil {
		at, err := time.Parse(time.RFC3339Nano, string(found[1]))
		return at, err == nil
	}
	return time.Time{}, false
}
