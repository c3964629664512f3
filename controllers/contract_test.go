package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestStatements checks that the numbers of the statements in each section are 1, 2, 3 and so
// on.
func TestStatements(t *testing.T) {
	section, next := "", 1
	var sections []string
	for _, s := range Statements() {
		under, _, _ := strings.Cut(s.ID, " ")
		if under != section {
			section, next = under, 1
			sections = append(sections, section)
		}
		if want := fmt.Sprintf("%s %d", section, next); s.ID != want || s.Text == "" {
			t.Errorf("statement %q with the text %q; want statement %q with a text", s.ID, s.Text, want)
		}
		next++
	}
	if want := []string{"ReplicaSet", "Deployment", "Endpoints"}; !slices.Equal(sections, want) {
		t.Errorf("sections with statements %q, want %q", sections, want)
	}
}
