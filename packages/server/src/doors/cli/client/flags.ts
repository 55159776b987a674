import { type Command, InvalidArgumentError } from 'commander'
import { defined } from '../../../kernel/base/defined.js'
import { invalidOption } from '../../../kernel/base/invalid-option.js'
import { parseQuantity } from '../../options/values.js'
import { readTextFile, TOKEN_VARIABLE, URL_VARIABLE } from '../option-sources.js'

const DEFAULT_PATH = '/ws'
const DEFAULT_URL = `ws://127.0.0.1:8080${DEFAULT_PATH}`
const WITHOUT_PATH = /^(?:wss?|https?):\/\/[^/?#]+$/i
/** `setTimeout` fires at once for larger values. */
const MAX_TIMER_MS = 2 ** 31 - 1

export interface ClientFlags {
  readonly url?: string
  readonly token?: string
  readonly tokenFile?: string
  readonly connectTimeout: number
}

export function addClientFlags(command: Command): Command {
  return command
    .option('-u, --url <url>', `Address of the server. (default: ${DEFAULT_URL}, env: ${URL_VARIABLE})`)
    .option('--token <token>', `Token; every user of this machine can see flags. (env: ${TOKEN_VARIABLE})`)
    .option('--token-file <file>', 'File with the token, read again for every connection.')
    .option('--connect-timeout <time>', 'Time to connect at first, retries included.', parseTimeMs, 10_000)
}

export interface ClientTarget {
  readonly url: string
  /** Called for every connection. */
  readonly token?: () => string
  readonly connectTimeoutMs: number
}

/** @throws {WebMQError} `E_OPTION_INVALID`: two tokens, an empty one, or a file that cannot be read. */
export function targetOf(flags: ClientFlags, env: NodeJS.ProcessEnv): ClientTarget {
  const token = tokenOf(flags, env)
  // A file that is missing is an error at once.
  token?.()
  const url = flags.url ?? (env[URL_VARIABLE] || DEFAULT_URL)
  return {
    url: WITHOUT_PATH.test(url) ? url + DEFAULT_PATH : url,
    connectTimeoutMs: flags.connectTimeout,
    ...defined({ token }),
  }
}

/** The token of the flags or of the environment; `undefined` without one. */
export function tokenOf(
  { token, tokenFile }: Pick<ClientFlags, 'token' | 'tokenFile'>,
  env: NodeJS.ProcessEnv,
): (() => string) | undefined {
  if (token !== undefined && tokenFile !== undefined)
    throw invalidOption('--token and --token-file are both given; use one')
  if (tokenFile !== undefined) return () => checked(readTextFile(tokenFile, '--token-file').trim(), '--token-file')
  const [text, label] = token === undefined ? [env[TOKEN_VARIABLE], TOKEN_VARIABLE] : [token, '--token']
  return text === undefined ? undefined : () => checked(text.trim(), label)
}

/** An empty token usually means a variable that is not set; it must not become an anonymous connection. */
function checked(token: string, label: string): string {
  if (token === '') throw invalidOption(`${label}: the token is empty`)
  return token
}

/** Reads the time of a flag, such as `10s`, as milliseconds. */
export function parseTimeMs(text: string): number {
  const ms = parseQuantity(text, 'ms')
  if (ms !== undefined && ms > 0 && ms <= MAX_TIMER_MS) return ms
  throw new InvalidArgumentError('It must be a time such as 10s, above 0 and below 24 days.')
}

export function parseCount(text: string): number {
  const count = Number(text)
  if (/^\d+$/.test(text) && Number.isSafeInteger(count) && count > 0) return count
  throw new InvalidArgumentError('It must be a whole number from 1.')
}
