/** A noun with its article: "an object", "a Map". */
export function withArticle(noun: string): string {
  return `${/^(?!u(?:i|ni|rl|s)|eu|one)[aeiou]/i.test(noun) ? 'an' : 'a'} ${noun}`
}
