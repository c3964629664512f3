// Package language tests the language of this project's comments, messages and documents. It limits
// the length of sentences in comments. It also rejects words for which Kubernetes has another term.
// docs/glossary.md defines the words in use, and CONTRIBUTING.md contains the rules.
package language
