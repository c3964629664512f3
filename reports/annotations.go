package reports

import (
	"fmt"
	"io"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// Annotations writes the commands by which a job of GitHub Actions gets
// annotations: an error for each distinct failure, a warning for each distinct
// verdict that is unknown. What the runner understands is written down in
// "Workflow commands for GitHub Actions".
func Annotations(w io.Writer, runs []Run) error {
	var b strings.Builder
	for _, f := range distinct(runs) {
		command := "warning"
		if f.verdict == check.Fail {
			command = "error"
		}
		title := fmt.Sprintf("%s on %s", f.where(), f.subject)
		if f.check != "" {
			title = f.check + ": " + title
		}
		fmt.Fprintf(&b, "::%s title=%s::%s\n", command, property.Replace(title),
			message.Replace(fmt.Sprintf("%s (in %s)\nagain: %s", f.reason, countRuns(f.runs), f.smallest.Again)))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing annotations: %w", err)
	}
	return nil
}

// How workflow commands take what would end them.
var (
	message  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)
