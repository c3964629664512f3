package language

import (
	"regexp"
	"strings"
	"unicode"
)

// replaced maps each word that comments, identifiers and texts must not contain to the term to
// use instead. The words are singular and in lower case. Words that also have an everyday
// meaning are in replacedIdentifiers.
var replaced = map[string]string{
	"abreast":     "parallel",
	"bereft":      "without owner",
	"deed":        "operation",
	"hibernate":   "pause",
	"hibernation": "pause",
	"judge":       "checker, check",
	"judged":      "checked",
	"judgment":    "verdict",
	"kinship":     "owner lookup",
	"ledger":      "owner state",
	"lookout":     "trigger dispatcher",
	"mishap":      "fault",
	"obstacle":    "admission fault",
	"quitter":     "stack dumper",
	"spoil":       "inject",
	"stray":       "orphaned, released, without owner",
	"tale":        "test case",
	"teller":      "debug client",
	"tenure":      "lease",
	"truth":       "committed state, commit",
	"weakness":    "known upstream issue",
}

// replacedIdentifiers maps words that identifiers must not contain to the terms to use instead.
// Comments and documents may use these words in their everyday meaning.
var replacedIdentifiers = map[string]string{
	"bag":      "results",
	"faces":    "pod versions",
	"hunt":     "campaign",
	"keeper":   "host",
	"kin":      "owner",
	"lane":     "row, connection pool",
	"resident": "standing subject",
	"seat":     "runner entry",
	"stranger": "other client",
	"tally":    "counts",
	"trap":     "allowed behavior",
	"witness":  "recorder",
	"world":    "object set",
}

// american maps the British spelling of frequent words to the American spelling. TestText reads
// this table for files that the linter misspell does not check.
var american = map[string]string{
	"behaviour": "behavior", "cancelled": "canceled", "catalogue": "catalog", "colour": "color", "favour": "favor",
	"honour": "honor", "initialise": "initialize", "judgement": "judgment", "labelled": "labeled", "licence": "license",
	"neighbour": "neighbor", "normalise": "normalize", "normalised": "normalized", "organise": "organize",
	"recognise": "recognize", "recognised": "recognized", "relabelled": "relabeled", "serialise": "serialize",
	"summarise": "summarize", "unlabelled": "unlabeled", "unrecognised": "unrecognized",
}

var proseWord = regexp.MustCompile(`[A-Za-z]+`)

// replacedIn searches a text for words that must not occur, the keys of the given tables. It
// returns the first such word of the text, and the term to use instead. Both results are "" if the
// text has no such word.
func replacedIn(text string, tables ...map[string]string) (word, replacement string) {
	for _, word := range proseWord.FindAllString(text, -1) {
		for _, table := range tables {
			if replacement := lookUp(table, strings.ToLower(word)); replacement != "" {
				return word, replacement
			}
		}
	}
	return "", ""
}

// lookUp returns the term to use instead of a word. The word may be a key of the table, or the
// plural of a key. For any other word, lookUp returns "".
func lookUp(table map[string]string, word string) string {
	if replacement := table[word]; replacement != "" {
		return replacement
	}
	return table[strings.TrimSuffix(word, "s")]
}

// identifierWords splits an identifier into its words, and separates the words by spaces. The
// identifier may be in camel case or contain underscores. For example, "leaseHolder" becomes
// "lease Holder".
func identifierWords(name string) string {
	var b strings.Builder
	previousLower := false
	for _, r := range name {
		switch {
		case r == '_':
			b.WriteByte(' ')
		case unicode.IsUpper(r) && previousLower:
			b.WriteByte(' ')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
		previousLower = unicode.IsLower(r) || unicode.IsDigit(r)
	}
	return b.String()
}
