/** Streams and environment of a command; passed in, so that no other file reads `process`. */
export interface Terminal {
  readonly env: NodeJS.ProcessEnv
  readonly stdin: NodeJS.ReadStream
  /** Data. */
  readonly stdout: NodeJS.WriteStream
  /** Logs, hints and errors. */
  readonly stderr: NodeJS.WriteStream
}

/** Styles that are readable on dark and light terminals. */
const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const

/** Styles text if the stream is a terminal and `NO_COLOR` is not set (no-color.org). */
export function paint(
  text: string,
  style: keyof typeof CODES,
  stream: NodeJS.WriteStream,
  env: NodeJS.ProcessEnv,
): string {
  return usesColor(stream, env) ? `\u001b[${CODES[style]}m${text}\u001b[0m` : text
}

function usesColor(stream: NodeJS.WriteStream, env: NodeJS.ProcessEnv): boolean {
  return stream.isTTY === true && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb'
}

/** Writes a warning to standard error. */
export function warn(message: string, { stderr, env }: Terminal): void {
  stderr.write(`${paint('warning:', 'yellow', stderr, env)} ${message}\n`)
}

/** Writes a line about what happens to standard error. */
export function note(message: string, { stderr, env }: Terminal): void {
  stderr.write(`${paint(message, 'dim', stderr, env)}\n`)
}

/**
 * Makes text of others safe for a terminal: escapes control characters, which could rewrite what is on the screen, and
 * invisible ones, which could make two texts look alike.
 */
export function printable(text: string): string {
  return text.replace(/\p{C}/gu, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)
}
