// Package language tests the language of comments, messages and documents of this project. It
// limits the length of sentences in comments. It also rejects words that the project has
// replaced by the terms of Kubernetes; docs/glossary.md defines the words in use.
// CONTRIBUTING.md has the rules.
package language
