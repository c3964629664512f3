package reports

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// These types are the XML elements of the JUnit format. They have only the fields that CI systems
// read.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Failure *junitMessage `xml:"failure"`
		Error   *junitMessage `xml:"error"`
		Skipped *junitMessage `xml:"skipped"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes runs as JUnit XML, with a test suite for each run and a test case for each check.
//
// The verdict fail becomes a failure, and unknown becomes an error. The verdicts not-exercised and
// known-upstream become skipped test cases. A run's verdict may be worse than the verdicts of its
// checks. An additional test case "run" then has the run's verdict.
func JUnit(w io.Writer, runs []Run) error {
	all := junitSuites{Name: "gauntlet"}
	var total time.Duration
	for _, run := range runs {
		suite := run.junit()
		all.Suites = append(all.Suites, suite)
		all.Tests += suite.Tests
		all.Failures += suite.Failures
		all.Errors += suite.Errors
		all.Skipped += suite.Skipped
		total += run.Duration
	}
	all.Time = fmt.Sprintf("%.3f", total.Seconds())
	encoded, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the verdicts as JUnit: %w", err)
	}
	if _, err := fmt.Fprintf(w, "%s%s\n", xml.Header, encoded); err != nil {
		return fmt.Errorf("writing the verdicts as JUnit: %w", err)
	}
	return nil
}

// junit returns the test suite of a run, with one test case for each check.
func (r *Run) junit() junitSuite {
	suite := junitSuite{
		Name: r.junitName(),
		Time: fmt.Sprintf("%.3f", r.Duration.Seconds()),
		Properties: []junitProperty{
			{"subject", r.Subject},
			{"provider", r.Provider},
			{"seed", fmt.Sprint(r.Seed)},
			{"directory", r.Directory},
			{"verdict", string(r.Verdict)},
			{"reason", r.Reason},
			{"reproduce", r.Reproduce},
		},
	}
	if r.worseThanResults() {
		suite.add(r.junitCase("run", r.Verdict, r.Reason, "Reproduce: "+r.Reproduce))
	}
	for _, result := range r.sortedResults() {
		suite.add(r.junitCase(result.Check, result.Verdict, result.Reason, r.junitText(result)))
	}
	return suite
}

// junitName returns the name under which CI systems show a run's test suite, such as "rollout on
// ours".
func (r *Run) junitName() string { return r.Scenario + " on " + r.Subject }

// add appends a test case to the suite, and counts the test case by its outcome.
func (s *junitSuite) add(c junitCase) {
	s.Cases = append(s.Cases, c)
	s.Tests++
	switch {
	case c.Failure != nil:
		s.Failures++
	case c.Error != nil:
		s.Errors++
	case c.Skipped != nil:
		s.Skipped++
	}
}

// junitCase returns a test case whose outcome is that of a verdict: passed, failed, skipped, or
// with an error. The reason is the message of the test case, unless the test case passed.
func (r *Run) junitCase(name string, verdict check.Verdict, reason, text string) junitCase {
	c := junitCase{Name: name, Class: r.junitName()}
	message := &junitMessage{Message: reason, Text: text}
	switch verdict {
	case check.Pass:
	case check.Fail:
		c.Failure = message
	case check.NotExercised:
		c.Skipped = &junitMessage{Message: reason}
	case check.KnownUpstream:
		c.Skipped = message
	default:
		c.Error = message
	}
	return c
}

// junitText returns the text of a check's test case. The text has the guarantee, the evidence and
// the link to the check in the report page. It ends with the command that reproduces the run.
func (r *Run) junitText(result check.Result) string {
	var lines []string
	if definition, ok := check.Find(result.Check); ok {
		lines = append(lines, "Guarantee: "+definition.Guarantee)
	}
	for _, e := range result.Evidence {
		lines = append(lines, "", strings.Join(EvidenceLines(e), "\n"))
	}
	if rest := more(result); rest != "" {
		lines = append(lines, "", rest)
	}
	if r.Directory != "" {
		lines = append(lines, "", "Report: "+checkPageOf(r, result.Check, "."))
	}
	return strings.Join(append(lines, "", "Reproduce: "+r.Reproduce), "\n")
}
