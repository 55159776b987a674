import { text } from 'node:stream/consumers'
import { Command } from 'commander'
import type { JWTPayload } from 'jose'
import { validateKey, validatePattern, WebMQError } from 'webmq-client/protocol'
import { defined } from '../../kernel/base/defined.js'
import { invalidOption } from '../../kernel/base/invalid-option.js'
import { reasonOf } from '../../kernel/base/reason.js'
import {
  ACTIONS,
  type AccessExplanation,
  type Action,
  createTokenVerifier,
  explainAccess,
  type Identity,
  type JwtOptions,
  parseGrants,
} from '../../kernel/identity/index.js'
import type { OptionSpec } from '../options/spec.js'
import { EXIT } from './exit-codes.js'
import { addOptionFlags, collect, readSources } from './option-flags.js'
import { inWords, paint, printable, type Terminal } from './terminal.js'
import { describeGrants } from './token-create.js'

const EXAMPLES = `Examples:
  webmq-server token inspect eyJ… --can 'publish chat.1'
  webmq-server token create … -q | webmq-server token inspect - --jwt-secret-file secret.txt

The exit code is 1 when the token does not verify, or when a --can question is denied.
`

interface Question {
  readonly action: Action
  readonly subject: string
}

interface Verdict {
  readonly status: 'verified' | 'not-verified' | 'refused'
  readonly error?: WebMQError
}

export function tokenInspectCommand(
  terminal: Terminal,
  tokenSpecs: readonly OptionSpec[],
  exit: (code: number) => void,
): Command {
  const command = new Command('inspect')
    .description('Show the content and grants of a token, and verify it if you give a key.')
    .addHelpText('before', EXAMPLES)
    .argument('<token>', 'The token; - reads it from standard input.')
    .option('--can <question>', "Ask: 'publish chat.1', 'listen chat.#'. (may be repeated)", collect)
    .option('--json', 'Print JSON.')
    .action(async (argument: string, flags: { can?: readonly string[]; json?: boolean }, self: Command) => {
      const questions = (flags.can ?? []).map(parseQuestion)
      const token = argument === '-' ? (await text(terminal.stdin)).trim() : argument.trim()
      const report = await inspect(token, readSources(self, tokenSpecs, terminal.env).jwt, questions)
      terminal.stdout.write(
        flags.json === true ? `${JSON.stringify(toJson(report), null, 2)}\n` : toText(report, terminal),
      )
      if (report.verdict.status === 'refused' || report.answers.some(({ isAllowed }) => !isAllowed)) exit(EXIT.FAILED)
    })
  addOptionFlags(command, tokenSpecs)
  return command
}

function parseQuestion(text: string): Question {
  const [word, subject, ...rest] = text.trim().split(/\s+/)
  const action = ACTIONS.find((known) => known === word)
  if (action === undefined || subject === undefined || rest.length > 0) {
    throw invalidOption(`--can: ${JSON.stringify(text)} is not 'publish <key>', 'listen <pattern>' or 'presence <key>'`)
  }
  try {
    if (action === 'listen') validatePattern(subject)
    else validateKey(subject)
  } catch (cause) {
    throw invalidOption(`--can: ${reasonOf(cause)}`, cause)
  }
  return { action, subject }
}

interface Report {
  readonly header: object
  readonly payload: JWTPayload
  readonly verdict: Verdict
  readonly identity: Identity
  /** Set when the claim is malformed; the identity then has no grants. */
  readonly grantsError?: WebMQError
  readonly answers: readonly (Question & AccessExplanation)[]
}

async function inspect(token: string, jwt: JwtOptions | undefined, questions: readonly Question[]): Promise<Report> {
  const { header, payload } = await decode(token)
  const verdict = await verify(token, jwt)
  const { grants, grantsError } = readGrants(payload)
  const identity: Identity = { ...defined({ userId: payload.sub }), grants }
  const answers = questions.map((question) => ({ ...question, ...answer(question, identity, verdict) }))
  return { header, payload, verdict, identity, answers, ...defined({ grantsError }) }
}

async function decode(token: string): Promise<{ readonly header: object; readonly payload: JWTPayload }> {
  const { decodeJwt, decodeProtectedHeader } = await import('jose')
  try {
    return { header: decodeProtectedHeader(token), payload: decodeJwt(token) }
  } catch (cause) {
    throw new WebMQError('E_TOKEN_INVALID', { detail: 'not a signed JWT', cause })
  }
}

async function verify(token: string, jwt: JwtOptions | undefined): Promise<Verdict> {
  if (jwt?.secret === undefined && jwt?.publicKey === undefined && jwt?.jwksUrl === undefined) {
    return { status: 'not-verified' }
  }
  try {
    await createTokenVerifier(jwt).verify(token)
    return { status: 'verified' }
  } catch (error) {
    if (error instanceof WebMQError && error.code !== 'E_OPTION_INVALID') return { status: 'refused', error }
    throw error
  }
}

function readGrants({ webmq }: JWTPayload): Pick<Report, 'grantsError'> & Pick<Identity, 'grants'> {
  try {
    return { grants: parseGrants(webmq) }
  } catch (error) {
    if (error instanceof WebMQError) return { grants: [], grantsError: error }
    throw error
  }
}

function answer({ action, subject }: Question, identity: Identity, verdict: Verdict): AccessExplanation {
  if (verdict.status === 'refused') return { isAllowed: false, reason: 'the token itself is refused' }
  return explainAccess(identity, action, subject)
}

function toJson({ header, payload, verdict, identity, grantsError, answers }: Report): object {
  return {
    signature: verdict.status,
    error: verdict.error && { code: verdict.error.code, message: verdict.error.message },
    grantsError: grantsError?.message,
    header,
    payload,
    grants: identity.grants,
    can: answers,
  }
}

function toText({ header, payload, verdict, identity, grantsError, answers }: Report, terminal: Terminal): string {
  const { stdout, env } = terminal
  const algorithm = ('alg' in header ? claimText(header.alg) : undefined) ?? '?'
  const lines = [
    ['signature', describeVerdict(verdict, algorithm, terminal)],
    ['user', claimText(payload.sub)],
    ['issuer', claimText(payload.iss)],
    ['audience', claimText(payload.aud)],
    ['issued', describeTime(payload.iat)],
    ['expires', payload.exp === undefined ? 'never' : describeTime(payload.exp)],
  ]
  const head = lines
    .flatMap(([name = '', text]) => (text === undefined ? [] : [`${name.padEnd(11)}${text}\n`]))
    .join('')
  const grants = grantsError === undefined ? describeGrants(identity.grants) : `  nothing: ${grantsError.message}\n`
  const questions = answers.map(({ action, subject, isAllowed, reason }) => {
    const word = isAllowed ? paint('allowed', 'green', stdout, env) : paint('denied', 'red', stdout, env)
    return `${action} ${subject}: ${word}, ${reason}\n`
  })
  return `${head}grants\n${grants}${questions.join('')}`
}

/** A claim as text for a terminal. Its author is untrusted. */
function claimText(claim: unknown): string | undefined {
  if (claim === undefined) return undefined
  return printable(typeof claim === 'string' ? claim : JSON.stringify(claim))
}

function describeVerdict(verdict: Verdict, algorithm: string, { stdout, env }: Terminal): string {
  switch (verdict.status) {
    case 'verified':
      return `${paint('verified', 'green', stdout, env)} (${algorithm})`
    case 'refused':
      return `${paint('REFUSED', 'red', stdout, env)} (${verdict.error?.message})`
    case 'not-verified':
      return `${paint('NOT VERIFIED', 'yellow', stdout, env)} (${algorithm}; use --jwt-secret-file, --jwt-public-key or --jwks): anyone may have written this`
  }
}

function describeTime(seconds: unknown): string | undefined {
  if (typeof seconds !== 'number') return claimText(seconds)
  const differenceS = Math.round(seconds - Date.now() / 1000)
  const date = new Date(seconds * 1000)
  if (Number.isNaN(date.getTime())) return `${seconds} (not a time)`
  return `${date.toISOString()} (${differenceS >= 0 ? `in ${inWords(differenceS)}` : `${inWords(-differenceS)} ago`})`
}
