package reports

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/reports/timeline"
)

// Log is the content of a log or diagnostics file of a run, or an excerpt of it.
type Log struct {
	Name string // the file name with the name of its directory, such as "logs/etcd.log"
	Text string
	// Excerpt says in one sentence which part of the file Text contains. It is empty if Text is
	// the whole file.
	Excerpt string
}

// maxLogPart is the maximum size of Log.Text, in bytes.
const maxLogPart = 16 << 10

// readTail returns the end of a file: as many whole lines as fit in maxLogPart bytes.
func readTail(path string) (Log, error) {
	file, err := inputfile.Open(path)
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
		log.Excerpt = fmt.Sprintf("The end of the file, without the first %d bytes.", omitted)
	}
	log.Text = validUTF8(content)
	return log, nil
}

// validUTF8 converts bytes to text and replaces invalid UTF-8 by U+FFFD, because an HTML page
// cannot show invalid UTF-8.
func validUTF8(content []byte) string { return string(bytes.ToValidUTF8(content, []byte("\uFFFD"))) }

// nameOf returns the name under which the report page shows a file. The name is the last two parts
// of the path, such as "logs/etcd.log".
func nameOf(path string) string {
	return filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path))
}

// logWindow selects the log lines that the report page shows. These are the lines in a time range
// around the first violation of a run, and the last earlier lines that name its object.
type logWindow struct {
	from, to time.Time
	object   string         // name of the violation's object; "" if the evidence names none
	names    *regexp.Regexp // matches object as a whole word
}

// These constants are the lengths of a logWindow before and after the first violation. The lines
// before the violation show what led to it. The lines after the violation show how the controllers
// under test reacted.
const (
	before = 3 * time.Second
	after  = time.Second
)

// namedLinesMax is the maximum number of lines before a logWindow that a report shows because they
// name the violation's object. The cause of a liveness violation often lies minutes before its time,
// which is the end of the run.
const namedLinesMax = 20

// logWindowAround returns the window around a run's first violation with the worst verdict; see
// [timeline.WorstEvidence]. It returns nil if the run has no violation or no timeline.
func logWindowAround(t *timeline.Timeline, results []check.Result) *logWindow {
	violations := timeline.WorstEvidence(results)
	if t == nil || len(violations) == 0 {
		return nil
	}
	first := slices.MinFunc(violations, func(a, b check.Evidence) int { return cmp.Compare(a.At, b.At) })
	at := t.Start.Time.Add(first.At)
	w := &logWindow{from: at.Add(-before), to: at.Add(after)}
	if first.Object != nil {
		w.object = first.Object.Name
		w.names = regexp.MustCompile(`\b` + regexp.QuoteMeta(w.object) + `\b`)
	}
	return w
}

// logMax is the number of bytes of a log file that a report examines. A run keeps at most 48 MiB of
// each log, so only a damaged file is larger.
const logMax = 64 << 20

// read returns those lines of a log file whose time is in the window. The last earlier lines that
// contain the name of the violation's object precede them.
//
// A line without a time belongs to the line before it. If the lines of the window or the earlier
// lines have more than maxLogPart bytes, read omits the earliest of them. It stops after logMax bytes.
func (w *logWindow) read(path string) (Log, error) {
	file, err := inputfile.Open(path)
	if err != nil {
		return Log{}, err
	}
	defer file.Close()
	var kept []byte
	var named [][]byte // the last earlier lines that name the object
	within, earlier := false, false
	for lines := bufio.NewReader(io.LimitReader(file, logMax)); ; {
		line, err := lines.ReadBytes('\n')
		if at, ok := timeOf(line, w.from); ok {
			within = !at.Before(w.from) && !at.After(w.to)
			earlier = at.Before(w.from)
		}
		if earlier && w.object != "" && bytes.Contains(line, []byte(w.object)) && w.names.Match(line) {
			named = append(named, line)
			named = named[max(0, len(named)-namedLinesMax):]
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
	kept = lastLines(kept)
	excerpt := fmt.Sprintf("From %s before the first violation to %s after it.", before, after)
	if len(named) > 0 {
		excerpt = fmt.Sprintf("The last earlier lines that contain %q (%d), and the lines from %s before the first violation to %s after it.", w.object, len(named), before, after)
		kept = append(append(lastLines(bytes.Join(named, nil)), "…\n"...), kept...)
	}
	return Log{
		Name:    nameOf(path),
		Excerpt: excerpt,
		Text:    validUTF8(kept),
	}, nil
}

// lastLines returns the last whole lines of a text, as many as fit in maxLogPart bytes.
func lastLines(text []byte) []byte {
	omitted := len(text) - maxLogPart
	if omitted <= 0 {
		return text
	}
	text = text[omitted:]
	return text[bytes.IndexByte(text, '\n')+1:]
}

// These patterns match the time in a log line. klogTime is for klog's text format, and jsonTime
// for log lines that are JSON objects.
var (
	klogTime = regexp.MustCompile(`^[IWEF](\d{4} \d\d:\d\d:\d\d\.\d+)`)
	jsonTime = regexp.MustCompile(`"(?:ts|time)":"([^"]+)"`)
)

// timeOf returns the time of a log line, or false if the line has none.
//
// Times in the klog format have neither year nor time zone. timeOf takes both from the argument
// near, which is any time in the same run.
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
