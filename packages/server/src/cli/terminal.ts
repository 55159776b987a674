/** Where a command writes and what surrounds it; passed in, so that nothing else reads the process. */
export interface Terminal {
  readonly env: NodeJS.ProcessEnv
  readonly stdin: NodeJS.ReadStream
  /** Data. */
  readonly stdout: NodeJS.WriteStream
  /** Everything that is not data: logs, hints, errors. */
  readonly stderr: NodeJS.WriteStream
}

/** Emphasis that works on dark and on light terminals. */
const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const

/** Writes text in a style where the stream is a terminal and `NO_COLOR` is not set (no-color.org). */
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

/** One line on standard error that is neither a log line nor fatal. */
export function warn(message: string, { stderr, env }: Terminal): void {
  stderr.write(`${paint('warning:', 'yellow', stderr, env)} ${message}\n`)
}
