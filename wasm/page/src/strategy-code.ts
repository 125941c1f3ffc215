// Generates programs that compute the report of a strategy document.

import { type Json, pretty } from "./json.js";

/** strategyGo returns a Go program that prints the report as a table. */
export function strategyGo(document: Json): string {
  const text = pretty(document);
  const literal = text.includes("`") ? JSON.stringify(text) : `\`${text}\``;
  return `package main

import (
	"fmt"
	"log"

	"github.com/meshfeed/meshfeed/core/strategy"
	"github.com/meshfeed/meshfeed/core/strategy/document"
)

const question = ${literal}

func main() {
	d, err := document.Parse([]byte(question))
	if err != nil {
		log.Fatal(err)
	}
	report, err := strategy.Advise(d)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(document.Text(d, report))
}
`;
}
