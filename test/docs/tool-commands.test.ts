import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { planRun } from '../../packages/bench/src/cli.js'
import { readOptions } from '../../packages/check/src/options.js'
import { ROOT } from './blocks.js'
import { blocksFor } from './examples.js'
import { commandsOf, isExcused } from './reasons.js'

const CRATES = 'packages/native/crates'
const OURS = [
  'client',
  'server',
  'broker-nats',
  'broker-rabbitmq',
  'broker-redis',
  'outbox-postgres',
  'transport-uws',
].map((name) => `webmq-${name}`)
const SILENT = { stdout: { write: () => undefined }, stderr: { write: () => undefined } }
const { examples } = blocksFor(import.meta.url)

interface Command {
  readonly place: string
  /** Where it runs, from the root. */
  readonly folder: string
  readonly words: readonly string[]
}

const commands = examples().flatMap((block) =>
  commandsOf(block)
    .filter((command) => isExcused(block, command))
    .map((command): Command => {
      const [, cd, inFolder = ''] = /^\(cd (\S+) && (.*)\)$/.exec(command) ?? []
      const plain = (cd === undefined ? command : inFolder).replace(/^(\w+=('[^']*'|\S+) )+/, '')
      const words = [...plain.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, word = '']) => quoted ?? word)
      const folder = cd ?? (block.page.startsWith('packages/') ? dirname(block.page) : '')
      return { place: `${block.page}:${block.line}`, folder, words }
    }),
)

const readText = (file: string) => readFileSync(join(ROOT, file), 'utf8')
const expectFile = (...parts: string[]) => expect(existsSync(join(ROOT, ...parts)), parts.join('/')).toBe(true)
const argsOf = (words: readonly string[]) => words.filter((word) => !word.startsWith('-'))
const afterFlag = (words: readonly string[], flag: string) => words[words.indexOf(flag) + 1] ?? ''

/** Every flag stands in the source that reads it. */
function expectFlags(source: string, words: readonly string[]): void {
  const text = readText(source)
  for (const flag of words.filter((word) => /^--./.test(word))) expect(text, flag).toContain(flag)
}

function expectScript(folder: string, script = ''): void {
  const scripts = ['', folder].map((each) => JSON.parse(readText(join(each, 'package.json'))).scripts)
  expect(Object.assign({}, ...scripts)).toHaveProperty([script])
}

/** A package of this repository, or one that it is tested with. */
const lock = readText('pnpm-lock.yaml')
function expectPackage(word: string): void {
  const [, name = ''] = /^(?:\w+\/)?(@?[^@#]+)/.exec(word) ?? []
  expect(OURS.includes(name) || new RegExp(`(^|\\W)${name}[@:]`).test(lock), name).toBe(true)
}

const compose = parse(readText('compose.yaml')) as { services: Record<string, { profiles?: string[] }> }

/** What a command names must be there: packages, scripts, files, projects, flags. By its first words. */
const CHECKS: Readonly<Record<string, (words: readonly string[], folder: string) => void>> = {
  'npm install': (words) => argsOf(words).forEach(expectPackage),
  'npm start': (_, folder) => expectScript(folder, 'start'),
  'npm test': (_, folder) => expectScript(folder, 'test'),
  'npm run': ([script, ...words], folder) => {
    expectScript(folder, script)
    for (const file of words.filter((word) => word.startsWith('test/'))) expectFile(file)
    if (script === 'example') expectFile('examples', words[0] ?? '', 'package.json')
    if (script === 'check:outside') expectFlags('test/checker/main.ts', words)
  },
  'pnpm --filter': ([name = '', script]) => expectScript(name.replace('webmq-', 'packages/'), script),
  'npx vitest': (words) => {
    const [project = '', ...files] = argsOf(words.slice(1))
    const names = readText('vitest.config.ts')
    expect(names.includes(`name: '${project}'`) || existsSync(join(ROOT, 'packages', project)), project).toBe(true)
    for (const file of files) expectFile(file)
  },
  'npx webmq-bench': (words) => expect(planRun(words, SILENT).planned.heading).not.toBe(''),
  'npx webmq-check': (words) => expect(readOptions(words)).not.toBeTypeOf('string'),
  'npx webmq-conformance': (words) => {
    const file = words.at(-1) ?? ''
    // The command before builds the other.
    if (!file.startsWith('.cache/')) expectFile(file)
  },
  'go build': (words, folder) => expectFile(folder, words.at(-1) ?? ''),
  node: ([file = '', ...words], folder) => {
    const isInFolder = existsSync(join(ROOT, folder, file))
    expectFile(isInFolder ? folder : '', file)
    if (!file.endsWith('benchmark.js')) return
    if (words[0] === 'compare') expectFlags('packages/bench/src/report/compare-command.ts', words)
    else expect(planRun(words, SILENT).planned.heading).not.toBe('')
  },
  cargo: (words) => {
    const crates = readdirSync(join(ROOT, CRATES)).map((name) => readText(join(CRATES, name, 'Cargo.toml')))
    if (words.includes('-p')) expect(crates.join()).toContain(`name = "${afterFlag(words, '-p')}"`)
    if (words.includes('--manifest-path')) expectFile(afterFlag(words, '--manifest-path'))
    if (!words.includes('fuzz')) return
    const folder = 'packages/native/fuzz'
    expectFile(folder, 'fuzz_targets', `${afterFlag(words, '.')}.rs`)
    expectFile(folder, 'seeds', afterFlag(words, '.'))
    for (const word of words) if (word.startsWith('-dict=')) expectFile(folder, word.slice(6))
  },
  'docker build': () => expectFile('Dockerfile'),
  'docker compose': (words) => {
    if (!words.includes('--profile')) return expect(Object.keys(compose.services)).toContain(words.at(-1))
    const profiles = Object.values(compose.services).flatMap(({ profiles = [] }) => profiles)
    expect(profiles).toContain(afterFlag(words, '--profile'))
  },
  'kubectl apply': (words) => expectFile(afterFlag(words, '--kustomize'), 'kustomization.yaml'),
  'helm install': ([, chart = '']) => expectFile(chart, 'Chart.yaml'),
}

/** They name nothing of this repository. */
const OTHERS = [
  ...[
    'npx tsc',
    'pip install',
    'go get',
    'rustup target',
    'docker run',
    'kubectl create',
    'systemctl enable',
    'webmq-server doctor',
    'git clone',
  ],
  // test/verify-release.test.ts compares them with the workflow.
  ...['npm audit', 'cosign verify', 'gh attestation', 'gh release', 'sha256sum --check'],
  ...['certbot certonly', 'mkcert -install', 'rabbitmqctl eval', 'webmq-loadgen'],
]

it.each(commands)('$place: what is named by $words', ({ words, folder }) => {
  const [first = '', second = ''] = words
  const pair = `${first} ${second}`
  const check = CHECKS[pair]
  if (check !== undefined) check(words.slice(2), folder)
  else if (CHECKS[first] !== undefined) CHECKS[first](words.slice(1), folder)
  else
    expect(
      OTHERS.some((begin) => pair.startsWith(begin)),
      pair,
    ).toBe(true)
})
