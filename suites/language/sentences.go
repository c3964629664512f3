package language

import (
	"go/ast"
	"regexp"
	"strings"
)

const (
	// firstSentenceWordsMax is the maximum number of words of the first sentence of a doc
	// comment.
	firstSentenceWordsMax = 20
	// sentenceWordsMax is the maximum number of words of all other sentences of comments.
	sentenceWordsMax = 30
)

// docSentences splits a comment into its sentences. It ignores code blocks, lists, headings
// and directives.
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
	// abbreviation matches a text that ends with an abbreviation such as "e.g.". The period of
	// an abbreviation does not end a sentence.
	abbreviation = regexp.MustCompile(`(?i)(\b(e\.g|i\.e|etc|vs|cf|no|approx)\.|…)$`)
)

// sentences splits a paragraph into its sentences.
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

// words returns the number of words of a sentence. A number, a path or an identifier is one
// word.
func words(sentence string) int { return len(strings.Fields(sentence)) }
