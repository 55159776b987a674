import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { CannotRun } from './exit-codes.js'
import type { Rules } from './judging/rules.js'

export const HELP = `Usage: webmq-check --url <url,…> [options]
       webmq-check --target <name> [options]

Plays random faults against a WebMQ installation, and judges what its clients are sent. Nodes and broker are left
alone: connections are cut, links are half-open and slow, clients move, stall and reload, publishes are sent twice.
Writes a page with the verdict, and a picture of each promise that was not kept.

What is checked:
  -u, --url <url,…>           ws:// or wss:// of each node, or of a load balancer
  -t, --target <name>         webmq, socketio, centrifugo, sockudo, sockudo-python: two nodes of its own;
                              or a command that speaks for a client of the system at --url
  --token <token>             Token of the clients: --token-file <file> is read anew for each connection
  --prefix <words>            First words of all keys (default: check)
  --fault-command <line>      Shell command that kills or restarts something; may be given several times

How long:
  -n, --schedules <number>    Schedules, of --target for each theme (default: 5)
  --seconds <number>          Length of a schedule (default: 10)
  --seed <number>             Seed of the first schedule; the next ones follow (default: random)
  --theme <words>             Of --target: only themes with these words in their names
  --parallel <number>         Of --target: schedules at the same time (default: 2)
  --shrink-seconds <number>   Time to look for smaller schedules that fail, too (default: 120; 0: none)
  --fault-seconds <number>    A --fault-command is killed after that (default: 60)
  --settle-seconds <number>   The installation recovers from a --fault-command within that (default: 10)

What is promised, where it cannot be found out:
  --log <kind>                shared: nodes have one log. per-node: memory, mesh
  --logged <rule>             Keys that are logged: all, none, or a rule of --history such as 'chat.#'
  --keeps <number>            Messages that the log holds at least (default: 0)
  --api-key-file <file>       Key of the HTTP API, to ask /api/info for the brokers
  --may-lose-log              A --fault-command may lose the log

Output:
  -r, --report <file>         Page of the run (default: webmq-check.html)
  --no-report                 No page
  --json                      The result as JSON on standard output
  -v, --version               Print the version
  -h, --help                  Print this help

Exit codes: 0 every promise was kept, 1 one was not, 2 nothing could be checked.

Examples:
  webmq-check --url ws://localhost:8080/ws
  webmq-check --url wss://a.example.com/ws,wss://b.example.com/ws --token-file token --logged 'chat.#'
  webmq-check --url ws://localhost:8080/ws --fault-command 'docker compose restart webmq' --settle-seconds 20
`

/** Bounds of numbers. */
const BOUNDS = {
  schedules: [1, 10_000],
  seconds: [3, 600],
  seed: [0, Number.MAX_SAFE_INTEGER],
  parallel: [1, 16],
  'shrink-seconds': [0, 3_600],
  'fault-seconds': [1, 600],
  'settle-seconds': [0, 300],
  keeps: [0, 1e9],
} as const
const MAX_URLS = 16
const MAX_COMMANDS = 8
const MAX_SECRET_BYTES = 16_384
const MAX_RANDOM_SEED = 1e6
const PREFIX = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+){0,7}$/
const LOGS = ['shared', 'per-node'] as const

export interface CheckOptions {
  readonly urls: readonly string[]
  readonly target: string
  /** Read anew each time. */
  readonly token?: () => string
  readonly apiKey?: string
  readonly prefix: string
  readonly commands: readonly string[]
  readonly schedules: number
  readonly lengthMs: number
  readonly seed: number
  readonly theme: string
  readonly parallelCount: number
  readonly shrinkMs: number
  readonly faultMs: number
  readonly settleMs: number
  readonly log?: Rules['log']
  readonly logged?: string
  readonly keepsMessages: number
  readonly mayLoseLog: boolean
  /** Missing: no page. */
  readonly report?: string
  readonly isJson: boolean
}

/** Reads a command line. @returns `help` and `version` where that is asked for. @throws {CannotRun} */
export function readOptions(args: readonly string[]): CheckOptions | 'help' | 'version' {
  const values = valuesOf(args)
  if (values.help) return 'help'
  if (values.version) return 'version'
  const number = (name: keyof typeof BOUNDS) => numberOf(values[name], name)
  const { token, 'token-file': tokenFile, 'api-key-file': keyFile } = values
  if (token !== undefined && tokenFile !== undefined) throw new CannotRun('--token and --token-file exclude each other')
  if (tokenFile !== undefined) readSecret(tokenFile)
  const log = LOGS.find((each) => each === values.log)
  if (values.log !== undefined && log === undefined)
    throw new CannotRun(`--log is ${LOGS.join(' or ')}, not ${values.log}`)
  if (!PREFIX.test(values.prefix))
    throw new CannotRun(`--prefix is words of letters, digits, - and _, with dots between them`)
  const urls = values.url.flatMap((text) => text.split(',')).filter((text) => text !== '')
  if (urls.length === 0 && values.target === undefined)
    throw new CannotRun('name an installation by --url, or a --target; --help tells more')
  if (urls.length > MAX_URLS) throw new CannotRun(`--url takes at most ${MAX_URLS} addresses`)
  for (const url of urls) expectUrl(url, values.target === undefined)
  if (values['fault-command'].length > MAX_COMMANDS)
    throw new CannotRun(`there are at most ${MAX_COMMANDS} fault commands`)
  const secret = tokenFile === undefined ? token : undefined
  return {
    urls,
    target: values.target ?? 'webmq',
    ...(tokenFile !== undefined
      ? { token: () => readSecret(tokenFile) }
      : secret === undefined
        ? {}
        : { token: () => secret }),
    ...(keyFile === undefined ? {} : { apiKey: readSecret(keyFile) }),
    prefix: values.prefix,
    commands: values['fault-command'],
    schedules: number('schedules'),
    lengthMs: number('seconds') * 1_000,
    seed: values.seed === undefined ? Math.floor(Math.random() * MAX_RANDOM_SEED) : number('seed'),
    theme: values.theme,
    parallelCount: number('parallel'),
    shrinkMs: number('shrink-seconds') * 1_000,
    faultMs: number('fault-seconds') * 1_000,
    settleMs: number('settle-seconds') * 1_000,
    ...(log === undefined ? {} : { log }),
    ...(values.logged === undefined ? {} : { logged: values.logged }),
    keepsMessages: number('keeps'),
    mayLoseLog: values['may-lose-log'],
    ...(values['no-report'] ? {} : { report: values.report }),
    isJson: values.json,
  }
}

function valuesOf(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        url: { type: 'string', short: 'u', multiple: true, default: [] },
        target: { type: 'string', short: 't' },
        token: { type: 'string' },
        'token-file': { type: 'string' },
        prefix: { type: 'string', default: 'check' },
        'fault-command': { type: 'string', multiple: true, default: [] },
        schedules: { type: 'string', short: 'n', default: '5' },
        seconds: { type: 'string', default: '10' },
        seed: { type: 'string' },
        theme: { type: 'string', default: '' },
        parallel: { type: 'string', default: '2' },
        'shrink-seconds': { type: 'string', default: '120' },
        'fault-seconds': { type: 'string', default: '60' },
        'settle-seconds': { type: 'string', default: '10' },
        log: { type: 'string' },
        logged: { type: 'string' },
        keeps: { type: 'string', default: '0' },
        'api-key-file': { type: 'string' },
        'may-lose-log': { type: 'boolean', default: false },
        report: { type: 'string', short: 'r', default: 'webmq-check.html' },
        'no-report': { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        version: { type: 'boolean', short: 'v', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    }).values
  } catch (error) {
    throw new CannotRun(`${error instanceof Error ? error.message : String(error)}; --help lists the options`)
  }
}

function numberOf(text: string | undefined, name: keyof typeof BOUNDS): number {
  const [min, max] = BOUNDS[name]
  const number = Number(text)
  if (text !== '' && Number.isInteger(number) && number >= min && number <= max) return number
  throw new CannotRun(`--${name} is a whole number from ${min} to ${max}, not ${text}`)
}

function expectUrl(text: string, isOfWebMQ: boolean): void {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const schemes = isOfWebMQ ? /^wss?:$/ : /^(ws|http)s?:$/
  if (url === undefined || !schemes.test(url.protocol)) throw new CannotRun(`--url is ws://… or wss://…, not ${text}`)
  if (url.username !== '' || url.password !== '') throw new CannotRun('--url has no password: use --token-file')
}

function readSecret(file: string): string {
  let text: string
  try {
    text = readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw new CannotRun(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  }
  if (text === '' || text.length > MAX_SECRET_BYTES) throw new CannotRun(`${file} has no token`)
  return text
}
