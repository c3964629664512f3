package reference

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-gauntlet/gauntlet/controllers"
)

// numbers matches a reference to one numbered statement of the contract, or to a range such as "3
// to 10". The name of a section of the contract may precede the number, as in "Deployment 3".
var numbers = regexp.MustCompile(`^(?:(\w+) )?(\d+)(?: to (\d+))?$`)

// statements returns the statements of controllers/CONTRACT.md to which a text refers. An example
// of the text is "ReplicaSet 11, Deployment 3, 19". If a part of the text has another form, the
// text refers to something else, and the result is nil.
func statements(contract string) []Item {
	var ids []string
	section := ""
	for _, part := range strings.Split(contract, ", ") {
		match := numbers.FindStringSubmatch(part)
		if match == nil {
			return nil
		}
		if match[1] != "" {
			section = match[1]
		}
		first, _ := strconv.Atoi(match[2]) // numbers matches only digits
		last := first
		if match[3] != "" {
			last, _ = strconv.Atoi(match[3])
		}
		for n := first; n <= last; n++ {
			ids = append(ids, fmt.Sprintf("%s %d", section, n))
		}
	}
	var items []Item
	for _, s := range controllers.Statements() {
		if slices.Contains(ids, s.ID) {
			items = append(items, Item{s.ID, strings.ReplaceAll(s.Text, "`", "")})
		}
	}
	return items
}

// writtenIn returns the path of controllers/CONTRACT.md if a text refers to it. Examples of such
// texts are "Deployment 9" and "The binary". It returns "" if the text names another document.
func writtenIn(contract string) string {
	if statements(contract) != nil || contract == "The binary" {
		return "controllers/CONTRACT.md"
	}
	return ""
}
