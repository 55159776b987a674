package webmq_test

import (
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What the blocks of the README take from the program around them.
const around = `
var (
	ctx    context.Context
	client *webmq.Client
	saved  string
)

func handle(context.Context, webmq.Task) error { return nil }

func model(context.Context, <-chan struct{}) iter.Seq[string] { return nil }
`

// Variables that a block shows, and does not use.
var unused = regexp.MustCompile(`(?m)^(older|reply|workers), err :=`)

func TestReadmeCompiles(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	folder := t.TempDir()
	build := func(name, code string) {
		path := filepath.Join(folder, name+".go")
		if err := os.WriteFile(path, []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		if output, err := exec.Command("go", "vet", path).CombinedOutput(); err != nil {
			t.Errorf("%s\n%s", output, code)
		}
	}
	var functions strings.Builder
	for number, block := range blocks {
		code := block[1]
		if formatted, err := format.Source([]byte(code)); err != nil || string(formatted) != code {
			t.Errorf("block %d is not as gofmt has it: %v\n%s", number, err, code)
		}
		if number == 0 {
			build("program", code)
			continue
		}
		for _, match := range unused.FindAllStringSubmatch(code, -1) {
			code += fmt.Sprintf("_ = %s\n", match[1])
		}
		if !strings.Contains(code, "return writer.End") {
			code += "return err\n"
		}
		if !strings.Contains(code, "err :=") || strings.HasPrefix(code, "var publishings") {
			code = "var err error\n" + code
		}
		fmt.Fprintf(&functions, "func block%d() error {\n%s}\n\n", number, code)
	}
	build("blocks", `package main

import (
	"context"
	"fmt"
	"iter"

	webmq "github.com/webmq/webmq/clients/go"
)
`+around+functions.String()+"func main() {}\n")
}
