// Package language tests the language of the project. It limits the length of sentences in
// doc comments, and rejects words that docs/glossary.md replaced with the terms of
// Kubernetes. The rules are in CONTRIBUTING.md.
package language
