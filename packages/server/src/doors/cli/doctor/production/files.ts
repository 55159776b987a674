import { execFileSync } from 'node:child_process'
import { existsSync, lstatSync, statSync } from 'node:fs'
import path from 'node:path'
import { STOP_GRACE_MS } from '../../../../kernel/node/stop-list.js'
import { warningsOf } from '../../../options/rules.js'
import type { ResolvedOptions } from '../../../options/server-options.js'
import { type Finding, failure, ok, skipped, warning } from '../target.js'
import { BROKER_LINES } from './broker-lines.js'
import { ASKS_READY, namesIn, type ProductionFolder } from './folder.js'
import { blocksOf, descriptorsOf, lastValueOf, linesInForce, secondsOf } from './read-value.js'
import { HOLDS, OF_KIND } from './safe-lines.js'

type Problem = readonly [text: string, advice: string]

/** One line for a check without problems, else a line for each. */
function verdict(check: string, text: string, problems: readonly Problem[]): readonly Finding[] {
  return problems.length === 0 ? [ok(check, text)] : problems.map((problem) => failure(check, ...problem))
}

/** What the files of an installation say, without asking a program that runs. */
export function checkFiles(folder: ProductionFolder): readonly Finding[] {
  const { options, defect } = folder
  const ofOptions =
    options === undefined
      ? [failure('options', `a node would not start: ${defect}`, 'Correct webmq.json, or the file that it names.')]
      : [...checkOptions(options), ...checkTimes(folder, options), ...checkDescriptors(folder, options)]
  return [
    ...verdict('secrets', 'files of their owner alone, and not in git', secretProblems(folder)),
    ...ofOptions,
    ...checkLines(folder),
    ...checkReceiver(folder),
  ]
}

/** Everybody but the owner. */
const OF_OTHERS = 0o077

function secretProblems(folder: ProductionFolder): readonly Problem[] {
  const root = path.join(folder.path, 'secrets')
  const names = namesIn(root)
  const problems: Problem[] = []
  for (const file of process.platform === 'win32' ? [] : [root, ...names.map((name) => path.join(root, name))]) {
    const mode = existsSync(file) ? statSync(file).mode : 0
    if ((mode & OF_OTHERS) !== 0)
      problems.push([`others than its owner can open ${file} (${(mode & 0o777).toString(8)})`, `chmod go= ${file}`])
  }
  if (!/^\/?secrets\/?$/m.test(folder.text('.gitignore')))
    problems.push(['.gitignore does not name secrets/', 'Write /secrets/ into .gitignore.'])
  const tracked = trackedSecrets(folder.path)
  if (tracked.length > 0)
    problems.push([
      `git has ${tracked.join(', ')}`,
      'git rm --cached them, and replace these secrets: git keeps its past.',
    ])
  const secrets = names.flatMap((name) => folder.secret(name).split(/\s+/)).filter((text) => text.length >= 16)
  for (const name of filesIn(folder.path)) {
    if (secrets.some((secret) => folder.text(name).includes(secret)))
      problems.push([`${name} has a secret in it`, 'Name the file in secrets/ instead, and replace this secret.'])
  }
  return problems
}

function trackedSecrets(folder: string): readonly string[] {
  try {
    const listed = execFileSync('git', ['ls-files', 'secrets'], { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] })
    return listed
      .toString()
      .split('\n')
      .filter((name) => name !== '')
  } catch {
    // Without git, or outside of a repository, nothing is tracked.
    return []
  }
}

/** What its programs have written is not looked at, and no link is followed. */
const NOT_READ: ReadonlySet<string> = new Set(['secrets', 'data', '.git'])

/** Files of an installation are few. */
function filesIn(root: string, below = ''): readonly string[] {
  return namesIn(path.join(root, below)).flatMap((each) => {
    const name = path.join(below, each)
    const found = lstatSync(path.join(root, name), { throwIfNoEntry: false })
    if (found?.isDirectory()) return NOT_READ.has(name) ? [] : filesIn(root, name)
    return found?.isFile() ? [name] : []
  })
}

function checkOptions(options: ResolvedOptions): readonly Finding[] {
  const { jwt, origins, history } = options
  const when = (isWrong: boolean, ...problem: Problem): readonly Problem[] => (isWrong ? [problem] : [])
  return [
    ...verdict('tokens', 'they end, and are for this host alone', [
      ...when(
        jwt === undefined,
        'everybody may connect without a token',
        'Set jwt.secret, jwt.publicKey or jwt.jwksUrl.',
      ),
      ...when(jwt?.requireExp !== true, 'tokens without exp are valid for ever', 'Set jwt.requireExp.'),
      ...when(jwt?.audience === undefined, 'tokens for other services are valid here', 'Set jwt.audience.'),
      ...when(options.insecure, 'insecure is on', 'Remove it.'),
    ]),
    ...verdict('access', 'known pages, keys for operators, a proxy that is believed', [
      ...when(origins.length === 0, 'no origin is named', 'Set origins to those of your pages.'),
      ...when(
        origins.some((origin) => ['*', 'null'].includes(origin)),
        'any page may connect in the name of its user',
        'Name the origins of your pages.',
      ),
      ...when(
        options.apiKeys.length === 0,
        'no API key: nobody can end a connection or revoke a token',
        'Set apiKeys by a file.',
      ),
      ...when(
        options.trustedProxies.length === 0,
        'limits and logs see the proxy instead of the client',
        'Set trustedProxies.',
      ),
      ...when(options.adminPort === undefined, 'metrics are on the public port', 'Set adminPort.'),
      ...when(options.demo, 'the demo page is public', 'Remove demo.'),
    ]),
    ...verdict('limits', 'connections and publishes have limits', [
      ...when(
        options.maxConnections === 0,
        'as many connections as descriptors: memory ends first',
        'Set maxConnections.',
      ),
      ...when(
        options.maxPublishesPerSecond === undefined,
        'a client publishes as fast as it can',
        'Set maxPublishesPerSecond.',
      ),
      ...when(
        options.maxPublishBytesPerSecond === undefined,
        'a client publishes as much as it can',
        'Set maxPublishBytesPerSecond.',
      ),
    ]),
    ...verdict('history', 'clients that were away get what they missed', [
      ...when(history.length === 0, 'there is no history: every reconnect is a gap', 'Set history.'),
    ]),
    ...verdict('audit', 'who connected and was refused is written down', [
      ...when(options.auditLog === 'off', 'nobody will know who connected', 'Set auditLog.'),
      ...when(
        ['trace', 'debug', 'silent'].includes(options.logLevel),
        `logLevel is ${options.logLevel}`,
        'Set info or warn.',
      ),
    ]),
    ...warningsOf(options).map((text) => warning('options', text, 'docs/configuration.md says more.')),
  ]
}

/** The checks of the proxy after which a node gets nobody. */
const CHECKS = 2

function checkTimes({ kind, units, text }: ProductionFolder, options: ResolvedOptions): readonly Finding[] {
  const proxies = blocksOf(text('Caddyfile'), /^\s*reverse_proxy /)
  const proxy = proxies.find((block) => ASKS_READY.test(block)) ?? proxies[0] ?? ''
  const intervalS = kind === 'helm' ? 2 : secondsOf(lastValueOf(proxy, 'health_interval'))
  const key = { systemd: 'TimeoutStopSec', compose: 'stop_grace_period', helm: 'terminationGracePeriodSeconds' }[kind]
  const stopMs = Math.min(...units.map((unit) => secondsOf(lastValueOf(unit, key)))) * 1_000
  const neededMs = options.drainDelayMs + options.drainTimeoutMs + STOP_GRACE_MS
  const problems: Problem[] = []
  if (options.drainDelayMs < CHECKS * intervalS * 1_000 || intervalS === 0)
    problems.push([
      `a node leaves after ${options.drainDelayMs} ms, and the proxy needs ${CHECKS * intervalS} s to notice`,
      'Set drainDelayMs above twice the interval of its checks (health_interval).',
    ])
  if (stopMs < neededMs)
    problems.push([`a node is killed after ${stopMs} ms, and its drain takes up to ${neededMs} ms`, `Raise ${key}.`])
  return verdict('drain', 'the proxy notices a node that leaves, and its clients have time to go', problems)
}

/** Log, broker, listening sockets, and connections that are refused. */
const OTHER_FILES = 500

function checkDescriptors(
  { kind, units, text }: ProductionFolder,
  { maxConnections }: ResolvedOptions,
): readonly Finding[] {
  if (kind === 'helm') return [skipped('descriptors', 'the nodes of Kubernetes set their number')]
  const key = kind === 'systemd' ? 'LimitNOFILE' : 'nofile'
  const proxy =
    kind === 'systemd' ? text('systemd/webmq-proxy.service') : blocksOf(text('compose.yaml'), /^ {2}proxy:/).join('\n')
  const problems: Problem[] = []
  for (const [whose, from, needed] of [
    ['a node', units, maxConnections + OTHER_FILES],
    ['the proxy', [proxy], 2 * maxConnections + OTHER_FILES],
  ] as const) {
    const limit = Math.min(...from.map((each) => descriptorsOf(each, key)))
    if (limit < needed) problems.push([`${whose} may open ${limit} files and needs ${needed}`, `Raise ${key}.`])
  }
  return verdict('descriptors', 'each connection has one', problems)
}

/** Looks for the lines that make an installation safe. What is absent is a mistake, whatever stands in its place. */
function checkLines({ kind, units, text }: ProductionFolder): readonly Finding[] {
  const inForce = (file: string) => {
    if (file === 'systemd/webmq@.service') return units.join('\n')
    return file.endsWith('.conf') ? linesInForce(text(file)) : text(file)
  }
  const ofBroker = Object.entries(BROKER_LINES).flatMap(([file, each]) => (text(file) === '' ? [] : each))
  const lines = [...ofBroker, ...OF_KIND[kind]]
  const checks = [...new Set(lines.map(({ check }) => check))]
  return checks.flatMap((check) => {
    const broken = lines.filter((each) => each.check === check && !each.holds.test(inForce(each.file)))
    return verdict(
      check,
      HOLDS[check] ?? '',
      broken.map((each) => [each.text, `${each.file}: ${each.advice}`]),
    )
  })
}

function checkReceiver({ kind, text }: ProductionFolder): readonly Finding[] {
  if (/^\s+\w+(_configs|Configs):$/m.test(text(kind === 'helm' ? 'alerts.yaml' : 'prometheus/alertmanager.yml')))
    return []
  return [
    warning(
      'alerts',
      'Alertmanager tells nobody',
      'webmq-server init --alerts URL, or a receiver in prometheus/alertmanager.yml.',
    ),
  ]
}
