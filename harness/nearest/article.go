package nearest

import "strings"

// WithArticle returns a name after its indefinite article, such as "a Pod" or "an Ingress".
func WithArticle[T ~string](name T) string {
	lower := strings.ToLower(string(name))
	switch {
	case lower == "":
		return ""
	case strings.ContainsRune("aeio", rune(lower[0])), strings.HasPrefix(lower, "up"), strings.HasPrefix(lower, "http"), strings.HasPrefix(lower, "un") && !strings.HasPrefix(lower, "uni"):
		return "an " + string(name)
	}
	return "a " + string(name)
}

// AnyOf returns names with their articles as text, such as "a ReplicaSet or an Ingress".
func AnyOf[T ~string](names []T) string {
	words := make([]string, 0, len(names))
	for _, name := range names {
		words = append(words, WithArticle(name))
	}
	return strings.Join(words, " or ")
}
