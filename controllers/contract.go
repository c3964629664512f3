// Package controllers contains the contract: numbered promises of the four controllers about
// their observable behavior.
package controllers

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// contract is the content of CONTRACT.md, the numbered promises of the controllers. Statements
// parses it.
//
//go:embed CONTRACT.md
var contract string

// Statement is one numbered promise of the contract about what users and clients can observe.
// Conformance specs name the statements that they test.
type Statement struct {
	// ID names the section of the contract and the number of the promise, such as "Deployment
	// 9".
	ID string
	// Text is the promise in Markdown, without its number.
	Text string
}

var (
	sectionHeading = regexp.MustCompile(`^## (.+)$`)
	numberedItem   = regexp.MustCompile(`^(\d+)\. (.+)$`)
)

// Statements returns all promises of the contract, in the order of CONTRACT.md.
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
