/** A part of code; without a kind it has no colour. */
export interface Token {
  readonly text: string
  readonly kind?: 'comment' | 'string' | 'word' | 'number'
}

/** In the order of the kinds. A template is a string as a whole. */
const TOKENS =
  /(\/\/.*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^'\\\n]|\\.)*'?|"(?:[^"\\\n]|\\.)*"?|`(?:[^`\\]|\\[\s\S])*`?)|\b(as|async|await|break|case|catch|class|const|continue|default|delete|do|else|export|extends|false|finally|for|from|function|if|import|in|instanceof|let|new|null|of|return|static|switch|this|throw|true|try|typeof|undefined|var|void|while|yield)\b|\b(\d[\d_.]*)\b/g
const KINDS = ['comment', 'string', 'word', 'number'] as const

/** Splits JavaScript into coloured and plain parts. Their texts together are the code. */
export function tokensOf(code: string): Token[] {
  const tokens: Token[] = []
  let end = 0
  for (const match of code.matchAll(TOKENS)) {
    const kind = KINDS.find((_, index) => match[index + 1] !== undefined)
    if (kind === undefined) continue
    if (match.index > end) tokens.push({ text: code.slice(end, match.index) })
    tokens.push({ text: match[0], kind })
    end = match.index + match[0].length
  }
  if (end < code.length) tokens.push({ text: code.slice(end) })
  return tokens
}
