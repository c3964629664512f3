// Package controllers contains the contract of the four controllers: what they promise.
package controllers

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// contract is the content of CONTRACT.md.
//
//go:embed CONTRACT.md
var contract string

// Statement is a numbered promise of the contract.
type Statement struct {
	// ID names the section and the number of the statement, such as "Deployment 9".
	ID string
	// Text is the statement in Markdown, without its number.
	Text string
}

var (
	sectionHeading = regexp.MustCompile(`^## (.+)$`)
	numberedItem   = regexp.MustCompile(`^(\d+)\. (.+)$`)
)

// Statements returns all statements of the contract, in its order.
var Statements = sync.OnceValue(func() []Statement {
	var all []Statement
	section := ""
	for line := range strings.Lines(contract) {
		line = strings.TrimSpace(line)
		if match := sectionHeading.FindStringSubmatch(line); match != nil {
			section = match[1]
		} else if match := numberedItem.FindStringSubmatch(line); match != nil {
			all = append(all, Statement{ID: fmt.Sprintf("%s %s", section, match[1]), Text: match[2]})
		}
	}
	return all
})
