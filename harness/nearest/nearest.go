// Package nearest finds the known name that a user probably meant. Error messages about an
// unknown name suggest the nearest name, or list all known names.
package nearest

import (
	"slices"
	"strings"
)

// Name returns the name that is most similar to a word, or "" if none is similar. A similar name
// has the same parts in another order, such as a-b and b-a, differs from the word by few typing
// errors, or contains it. Case does not matter.
func Name(word string, names []string) string {
	if word = strings.ToLower(word); word == "" {
		return ""
	}
	for _, name := range names {
		if slices.Equal(parts(word), parts(name)) {
			return name
		}
	}
	best, least := "", len(word)
	for _, name := range names {
		// One typing error is allowed for each three letters, and one in a shorter word.
		allowed := max(1, min(len(word), len(name))/3)
		if d := distance(word, strings.ToLower(name)); d <= allowed && d < least {
			best, least = name, d
		}
	}
	if best != "" || len(word) < partMin {
		return best
	}
	for _, name := range names {
		if strings.Contains(strings.ToLower(name), word) && (best == "" || len(name) < len(best)) {
			best = name
		}
	}
	return best
}

// parts returns the parts of a name that hyphens separate, sorted and in lower case.
func parts(name string) []string {
	return slices.Sorted(strings.SplitSeq(strings.ToLower(name), "-"))
}

// partMin is the minimum length of a word for which Name also returns names that contain the
// word.
const partMin = 4

// Suggestion returns the end of an error message about an unknown word, such as "; did you mean
// max-surge?". It returns "" if no name is similar.
func Suggestion(word string, names []string) string {
	if name := Name(word, names); name != "" {
		return "; did you mean " + name + "?"
	}
	return ""
}

// List joins names for a sentence, such as "a, b or c". The argument last is the conjunction
// before the last name, such as "or".
func List[T ~string](names []T, last string) string {
	var b strings.Builder
	for i, name := range names {
		switch {
		case i == 0:
		case i == len(names)-1:
			b.WriteString(" " + last + " ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(string(name))
	}
	return b.String()
}

// distance returns the number of typing errors that turn one word into another. A typing error
// inserts, removes or replaces one byte, or swaps two adjacent bytes.
func distance(from, to string) int {
	rows := make([][]int, len(from)+1)
	for i := range rows {
		rows[i] = make([]int, len(to)+1)
		rows[i][0] = i
	}
	for j := range len(to) {
		rows[0][j+1] = j + 1
	}
	for i := 1; i <= len(from); i++ {
		for j := 1; j <= len(to); j++ {
			replaced := rows[i-1][j-1]
			if from[i-1] != to[j-1] {
				replaced++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, replaced)
			if i > 1 && j > 1 && from[i-1] == to[j-2] && from[i-2] == to[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(from)][len(to)]
}
