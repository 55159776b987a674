import { styleText } from 'node:util'

/** Streams and environment of a command; passed in, so that no other file reads `process`. */
export interface Terminal {
  readonly env: NodeJS.ProcessEnv
  readonly stdin: NodeJS.ReadStream
  /** Data. */
  readonly stdout: NodeJS.WriteStream
  /** Logs, hints and errors. */
  readonly stderr: NodeJS.WriteStream
}

/** Styles text if the stream is a terminal and `NO_COLOR` is not set (no-color.org). */
export function paint(
  text: string,
  style: 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan',
  stream: NodeJS.WriteStream,
  env: NodeJS.ProcessEnv,
): string {
  return usesColor(stream, env) ? styleText(style, text, { validateStream: false }) : text
}

/** Whether a stream gets colours. */
export function usesColor(stream: NodeJS.WriteStream, env: NodeJS.ProcessEnv): boolean {
  return stream.isTTY === true && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb'
}

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

export function inWords(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`
}
