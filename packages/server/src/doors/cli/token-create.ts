import { createPrivateKey, createSecretKey, type KeyObject } from 'node:crypto'
import { Command } from 'commander'
import { validatePattern } from 'webmq-client/protocol'
import { defined } from '../../kernel/base/defined.js'
import { invalidOption } from '../../kernel/base/invalid-option.js'
import { reasonOf } from '../../kernel/base/reason.js'
import {
  ACTIONS,
  type Action,
  claimDefect,
  type Grant,
  type JwtOptions,
  secretsOf,
} from '../../kernel/identity/index.js'
import { algorithmsOf, HMAC_ALGORITHMS } from '../../kernel/identity/keys.js'
import type { OptionSpec } from '../options/spec.js'
import { parseQuantity } from '../options/values.js'
import { addOptionFlags, collect, readSources } from './option-flags.js'
import { readTextFile } from './option-sources.js'
import { type Terminal, warn } from './terminal.js'

const EXAMPLES = `Examples:
  webmq-server token create --grant 'chat.#:listen,publish' --user alice --ttl 1h --jwt-secret-file secret.txt
  webmq-server token create --grant 'prices.*:listen' --private-key issuer.pem --alg ES256 -q
`

interface CreateFlags {
  readonly grant?: readonly string[]
  readonly user?: string
  readonly ttl: string
  readonly alg?: string
  readonly kid?: string
  readonly privateKey?: string
  readonly quiet?: boolean
}

/** Server options of this command, with help texts for creating tokens instead of verifying them. */
const HELP: Readonly<Record<string, string>> = {
  'jwt.secret': 'Shared secret to sign with; the first of several.',
  'jwt.issuer': 'Issuer of the token (iss).',
  'jwt.audience': 'Audience of the token (aud).',
}

export function tokenCreateCommand(terminal: Terminal, tokenSpecs: readonly OptionSpec[]): Command {
  const specs = tokenSpecs.flatMap((spec) => {
    const help = HELP[spec.name]
    return help === undefined ? [] : [{ ...spec, help }]
  })
  const command = new Command('create')
    .description('Print a new token, and its grants on standard error.')
    .addHelpText('before', EXAMPLES)
    .option('-g, --grant <pattern:actions>', "Grant: 'chat.#:listen,publish'. (may be repeated)", collect)
    .option('-u, --user <id>', 'User of the token (sub).')
    .option('--ttl <time>', 'Lifetime of the token.', '1h')
    .option('--private-key <file>', 'Sign with this PEM key instead of a shared secret.')
    .option('--alg <name>', 'Signature algorithm. (default: the first that fits the key)')
    .option('--kid <id>', 'Id of the key in its key set.')
    .option('-q, --quiet', 'Print the token only.')
    .action(async (flags: CreateFlags, self: Command) => {
      const jwt = readSources(self, specs, terminal.env).jwt ?? {}
      const grants = (flags.grant ?? []).map(parseGrantFlag)
      const { token, expiresAt, algorithm } = await createToken(flags, jwt, grants)
      terminal.stdout.write(`${token}\n`)
      if (flags.quiet === true) return
      const who = flags.user === undefined ? 'an anonymous user' : flags.user
      terminal.stderr.write(`${algorithm} token for ${who}, valid until ${expiresAt.toISOString()}; it allows\n`)
      terminal.stderr.write(describeGrants(grants))
      if (grants.length === 0) warn("the token allows nothing; add --grant 'chat.#:listen,publish'", terminal)
    })
  addOptionFlags(command, specs)
  return command
}

/** Describes grants, one line per pattern. */
export function describeGrants(grants: readonly Grant[]): string {
  if (grants.length === 0) return '  nothing\n'
  return grants
    .flatMap(({ keys, allow }) => keys.map((pattern) => `  ${allow.join(' and ') || 'nothing'} ${pattern}\n`))
    .join('')
}

/** Reads `chat.#:listen,publish`. A pattern may contain colons, so the last one separates. */
function parseGrantFlag(text: string): Grant {
  const colon = text.lastIndexOf(':')
  const pattern = text.slice(0, colon)
  const actions = text.slice(colon + 1).split(',')
  if (colon < 0 || !actions.every((action): action is Action => ACTIONS.some((known) => known === action))) {
    throw invalidOption(`--grant: ${JSON.stringify(text)} is not <pattern>:<actions>, such as 'chat.#:listen,publish'`)
  }
  try {
    validatePattern(pattern)
  } catch (cause) {
    throw invalidOption(`--grant: ${reasonOf(cause)}`, cause)
  }
  return { keys: [pattern], allow: actions }
}

async function createToken(flags: CreateFlags, jwt: JwtOptions, grants: readonly Grant[]) {
  const ttlS = parseQuantity(flags.ttl, 's') ?? 0
  if (!Number.isInteger(ttlS) || ttlS <= 0)
    throw invalidOption(`--ttl: ${JSON.stringify(flags.ttl)} is not a time such as 1h`)
  const { key, algorithms } = signingKey(flags, jwt)
  const algorithm = flags.alg ?? algorithms[0] ?? ''
  if (!algorithms.includes(algorithm)) {
    throw invalidOption(`--alg: ${algorithm} does not fit this key, which allows ${algorithms.join(', ')}`)
  }
  const issuedAtS = Math.floor(Date.now() / 1000)
  const expiresAtS = issuedAtS + ttlS
  const { SignJWT } = await import('jose')
  const signer = new SignJWT({ webmq: { grants } })
    .setProtectedHeader({ alg: algorithm, typ: jwt.type ?? 'JWT', ...defined({ kid: flags.kid }) })
    .setIssuedAt(issuedAtS)
    .setExpirationTime(expiresAtS)
  const defect = flags.user === undefined ? undefined : claimDefect(flags.user)
  if (defect !== undefined) throw invalidOption(`--user: it ${defect}`)
  if (flags.user !== undefined) signer.setSubject(flags.user)
  if (jwt.issuer !== undefined) signer.setIssuer(jwt.issuer)
  if (jwt.audience !== undefined) signer.setAudience(jwt.audience)
  return { token: await signer.sign(key), expiresAt: new Date(expiresAtS * 1000), algorithm }
}

function signingKey(
  { privateKey }: CreateFlags,
  jwt: JwtOptions,
): { readonly key: KeyObject; readonly algorithms: readonly string[] } {
  if (privateKey !== undefined) {
    const key = readPrivateKey(privateKey)
    return { key, algorithms: algorithmsOf(key) }
  }
  const [secret] = secretsOf(jwt)
  if (secret !== undefined) return { key: createSecretKey(secret, 'utf8'), algorithms: HMAC_ALGORITHMS }
  throw invalidOption('no key to sign with: use --jwt-secret-file, --jwt-secret, WEBMQ_JWT_SECRET or --private-key')
}

function readPrivateKey(path: string): KeyObject {
  const pem = readTextFile(path, '--private-key')
  try {
    return createPrivateKey(pem)
  } catch (cause) {
    throw invalidOption(`--private-key: ${path} contains no PEM private key`, cause)
  }
}
