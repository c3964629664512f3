package language

import (
	"go/ast"
	"regexp"
	"strings"
)

const (
	// firstSentenceWordsMax is the maximum number of words in the first sentence of a doc
	// comment.
	firstSentenceWordsMax = 20
	// sentenceWordsMax is the maximum number of words in any other sentence of a comment.
	sentenceWordsMax = 30
)

// docSentences returns the sentences of a comment. It ignores code blocks, lists, headings and
// directives.
func docSentences(group *ast.CommentGroup) []string {
	var prose []string
	for _, paragraph := range strings.Split(group.Text(), "\n\n") {
		if paragraph == "" || strings.ContainsAny(paragraph[:1], " \t#-0123456789") || strings.Contains(paragraph, "\n  ") || strings.Contains(paragraph, "\n\t") {
			continue
		}
		prose = append(prose, sentences(paragraph)...)
	}
	return prose
}

var (
	// sentenceEnd matches the end of a sentence. This is a period, exclamation mark or
	// question mark before white space or at the end of the text.
	sentenceEnd = regexp.MustCompile(`[.!?]["')\]]*(\s+|$)`)
	// abbreviation matches a text that ends with an abbreviation, such as "e.g.". The period of
	// an abbreviation does not end a sentence.
	abbreviation = regexp.MustCompile(`(?i)(\b(e\.g|i\.e|etc|vs|cf|no|approx)\.|…)$`)
)

// sentences returns the sentences of a paragraph.
func sentences(paragraph string) []string {
	var all []string
	start := 0
	for _, end := range sentenceEnd.FindAllStringIndex(paragraph, -1) {
		candidate := strings.TrimSpace(paragraph[start:end[1]])
		if abbreviation.MatchString(candidate) {
			continue
		}
		all = append(all, candidate)
		start = end[1]
	}
	if rest := strings.TrimSpace(paragraph[start:]); rest != "" {
		all = append(all, rest)
	}
	return all
}

// words returns the number of words in a sentence. A number, a path or an identifier counts as
// one word.
func words(sentence string) int { return len(strings.Fields(sentence)) }
