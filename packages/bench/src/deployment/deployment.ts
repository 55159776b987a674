import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type Command, InvalidArgumentError, type OptionValues } from 'commander'
import { isKey } from 'webmq-client/protocol'
import { UsageError } from '../exit-codes.js'

const DEFAULT_PATH = '/ws'
const RUN_ID_BYTES = 6

export interface Deployment {
  /** `ws:` or `wss:`. */
  readonly url: URL
  readonly token?: string
  /** Accepts every certificate. */
  readonly isInsecure: boolean
  /** Further authorities, as PEM. */
  readonly ca?: string
  /** Beginning of every key of this run, which no other run has. */
  readonly keyPrefix: string
  /** Whether {@link checkLimits} is left out. */
  readonly isUnlimited: boolean
}

export function addDeploymentOptions(command: Command): void {
  command
    .requiredOption('--url <url>', 'the server to measure, such as wss://rt.example.com/ws; it runs already', parseUrl)
    .option('--token <jwt>', 'credentials of every connection')
    .option('--insecure', 'accept every certificate')
    .option('--ca <file>', "accept this authority's certificates too (PEM)")
    .option(
      '--key-prefix <key>',
      'beginning of all keys; the token must grant listen and publish for everything below',
      parsePrefix,
      'webmq-bench',
    )
    .option('--no-limits', 'loads that could harm a server in production')
}

/** @throws {UsageError} when the authority cannot be read. */
export function readDeployment(values: OptionValues): Deployment {
  const { url, token, insecure, ca, keyPrefix, limits } = values as {
    readonly url: URL
    readonly token?: string
    readonly insecure?: true
    readonly ca?: string
    readonly keyPrefix: string
    readonly limits: boolean
  }
  return {
    url,
    ...(token === undefined ? {} : { token }),
    isInsecure: insecure === true,
    ...(ca === undefined ? {} : { ca: read(ca) }),
    keyPrefix: `${keyPrefix}.${randomBytes(RUN_ID_BYTES).toString('hex')}`,
    isUnlimited: !limits,
  }
}

/** Options of Node's TLS for the server's certificate. */
export function tlsOptionsOf({ isInsecure, ca }: Pick<Deployment, 'isInsecure' | 'ca'>): {
  readonly rejectUnauthorized: boolean
  readonly ca?: string
} {
  return { rejectUnauthorized: !isInsecure, ...(ca === undefined ? {} : { ca }) }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw new UsageError(`--ca ${file} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`)
  }
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text.replace(/^http/i, 'ws')) ? new URL(text.replace(/^http/i, 'ws')) : undefined
  if (url === undefined || !/^wss?:$/.test(url.protocol)) {
    throw new InvalidArgumentError('It must be like wss://rt.example.com/ws.')
  }
  if (url.pathname === '/') url.pathname = DEFAULT_PATH
  url.hash = ''
  return url
}

function parsePrefix(text: string): string {
  if (!isKey(text)) throw new InvalidArgumentError('It must be a key, such as team.bench.')
  return text
}
