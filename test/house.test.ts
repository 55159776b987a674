import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { circlesOf, importersOf, productImports } from './imports.ts'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const MAX_LOOSE_FILES = 5

/** What the library of a broker or of the outbox keeps to itself: its authors change it without notice. With a line that would show it. */
const INNER_NAMES: readonly (readonly [library: string, names: RegExp, sample: string])[] = [
  [
    'amqplib',
    // Its types have the properties of the server.
    /\b(InnerConnection|recvFrame|sendBytes|sendMethod)\b|\.(frameMax|ch)\b|\bmodel\.connection\b(?!\.serverProperties)/,
    'inner.recvFrame = () => undefined',
  ],
  ['ioredis', /\b(commandQueue|offlineQueue|connectionEpoch)\b/, 'client.commandQueue.clear()'],
  ['nats', /\b(ProtocolHandler|NatsConnectionImpl)\b/, 'new ProtocolHandler(options)'],
  [
    'a path past the exports',
    /['"](amqplib\/lib|ioredis\/(built|dist)|pg\/lib|@nats-io\/[\w-]+\/(lib|src|internal))/,
    "import { Parser } from '@nats-io/nats-core/internal'",
  ],
]

/** What could be taken out: folders of `packages/server/src`. */
const FEATURES = [
  ...['hooks', 'streams', 'queue-groups', 'operators', 'outbox', 'presence'].map((room) => `features/${room}`),
  ...['doors/sse', 'features/observing/tracing', 'features/observing/audit', 'features/certificates'],
  ...['doors/http/admin', 'features/streams/durable'],
]

/** Most lines of product code by part, and most bytes of Markdown (ADR 85). */
const BUDGETS: readonly (readonly [part: string, files: RegExp, most: number])[] = [
  ['kernel', /^packages\/server\/src\/kernel\//, 14_000],
  ['features', /^packages\/server\/src\/features\//, 14_400],
  ['doors', /^packages\/server\/src\/doors\//, 13_500],
  ['adapters', /^packages\/server\/src\/adapters\//, 12_300],
  ['redis', /^packages\/broker-redis\/src\//, 2_600],
  ['nats', /^packages\/broker-nats\/src\//, 2_600],
  ['rabbitmq', /^packages\/broker-rabbitmq\/src\//, 2_600],
  ['outbox', /^packages\/outbox-postgres\/src\//, 1_000],
  ['uWebSockets.js', /^packages\/transport-uws\/src\//, 1_500],
  ['client', /^packages\/client\/src\//, 18_800],
]
const MAX_MARKDOWN_BYTES = 1_030_000

/** What is there today, and may only shrink. `npx vitest run --project end-to-end test/house.test.ts -u` writes it. */
const IMPORTS = 'imports.json'

const files = git('ls-files', '--cached', '--others', '--exclude-standard').filter((file) => existsSync(ROOT + file))

describe('the house', () => {
  it('has no file that repeats the name of its folder', () => {
    expect(filesThatRepeatTheirFolder(['nats/nats-link.ts', 'fanout/fanout_log.rs', 'nats/link.ts'])).toHaveLength(2)
    expect(filesThatRepeatTheirFolder(files)).toEqual([])
  })

  it.each(['client', 'server'])(
    `has at most ${MAX_LOOSE_FILES} loose files in packages/%s/src, tests aside`,
    (name) => {
      const loose = files.filter((file) => file.match(`^packages/${name}/src/[^/]+$`) && !file.includes('.test'))
      expect(loose).toContain(`packages/${name}/src/index.ts`)
      expect(loose.length, loose.join()).toBeLessThanOrEqual(MAX_LOOSE_FILES)
    },
  )

  it('is where ARCHITECTURE.md says', () => {
    const rows = codeMap(readText('ARCHITECTURE.md'))
    expect(rows.length).toBeGreaterThan(10)
    const missing = rows.flatMap((row) => pathsOf(row).filter((path) => !isThere(path)))
    expect(missing).toEqual([])
    expect(rows.filter((row) => pathsOf(row).length === 0)).toEqual([])
  })

  it('has one floor for every file of src', async () => {
    const config: { readonly FLOORS: Readonly<Record<string, readonly (readonly string[])[]>> } = await import(
      `${ROOT}.dependency-cruiser.mjs`
    )
    const packages = Object.entries(config.FLOORS)
    expect(packages.map(([name]) => name)).toEqual(expect.arrayContaining(['server', 'client', 'bench']))
    for (const [name, floors] of packages) {
      const rooms = floors.flat()
      const inSrc = files.flatMap(
        (file) => file.match(`^packages/${name}/src/(.+?)(?<!\\.test(?:-d)?)\\.ts$`)?.[1] ?? [],
      )
      const isIn = (room: string) => (file: string) => file === room || file.startsWith(`${room}/`)
      const roomCount = (file: string) => rooms.filter((room) => isIn(room)(file)).length
      expect(inSrc.length, name).toBeGreaterThan(10)
      expect(inSrc.filter((file) => roomCount(file) !== 1)).toEqual([])
      expect(rooms.filter((room) => !inSrc.some(isIn(room)))).toEqual([])
    }
  })

  it('has a paragraph for every room of the client', async () => {
    const { FLOORS } = await import(`${ROOT}.dependency-cruiser.mjs`)
    const [, wings = ''] = readText('ARCHITECTURE.md').split('\n## The wings of the client\n')
    const named = [...(wings.split('\n## ')[0] ?? '').matchAll(/`([^`]+?)(?:\/|\.ts)`/g)].map(([, name]) => name)
    const rooms: string[] = FLOORS.client.flat()
    expect(named).toContain('core/connection')
    // Files of the core stand there without its name.
    expect(rooms.filter((room) => ![room, room.replace('core/', '')].some((name) => named.includes(name)))).toEqual([])
  })

  it('has no new circle of imports, types included, and no new importer of a feature', async () => {
    const imports = productImports()
    const circles = circlesOf(imports).map((circle) => circle.join(' '))
    const importers = Object.fromEntries(
      FEATURES.map((feature) => [feature, importersOf(`packages/server/src/${feature}/`, imports).length]),
    )
    const listed: { circles: string[]; importers: Record<string, number> } = JSON.parse(readText(`test/${IMPORTS}`))
    const isListed = (circle: string) =>
      listed.circles.some((other) => circle.split(' ').every((file) => other.split(' ').includes(file)))
    expect(circles.filter((circle) => !isListed(circle))).toEqual([])
    expect(FEATURES.filter((feature) => (importers[feature] ?? 0) > (listed.importers[feature] ?? 0))).toEqual([])
    // One that is gone leaves the list.
    await expect(`${JSON.stringify({ circles, importers }, null, 2)}\n`).toMatchFileSnapshot(IMPORTS)
  })

  it.each(BUDGETS)('keeps the budget of %s', (_, part, most) => {
    const sources = files.filter((file) => part.test(file) && /\.ts$/.test(file) && !/\.test(-d)?\.ts$/.test(file))
    expect(sources.length).toBeGreaterThan(2)
    expect(sources.reduce((sum, file) => sum + readText(file).split('\n').length - 1, 0)).toBeLessThanOrEqual(most)
  })

  it('keeps the budget of its pages', () => {
    const bytes = files
      .filter((file) => file.endsWith('.md'))
      .reduce((sum, file) => sum + statSync(ROOT + file).size, 0)
    expect(bytes).toBeGreaterThan(100_000)
    expect(bytes).toBeLessThanOrEqual(MAX_MARKDOWN_BYTES)
  })

  it.each(INNER_NAMES)('knows no inner name of %s', (_, names, sample) => {
    expect(sample).toMatch(names)
    const adapters = files.filter((file) => /^packages\/(broker|outbox)-[\w-]+\/src\/.*\.ts$/.test(file))
    expect(adapters.length).toBeGreaterThan(10)
    const found = adapters.flatMap((file) =>
      readText(file)
        .split('\n')
        .flatMap((line, index) => (names.test(line) ? [`${file}:${index + 1}: ${line.trim()}`] : [])),
    )
    expect(found).toEqual([])
  })

  it('has a checker that knows nothing of the client and the server', () => {
    const checker = files.filter((file) =>
      /^(test\/checker|packages\/check\/(src\/(?!targets)|test))\/.*\.ts$/.test(file),
    )
    expect(checker.length).toBeGreaterThan(10)
    // Clients of other languages are driven by lines of JSON, whose driver knows nothing of them.
    const ours =
      /from '(webmq-(client|server|conformance|native)|[./]*packages\/(?!conformance\/src\/client\/adapter\.js'|check\/))/
    expect("import { matches } from 'webmq-client/protocol'").toMatch(ours)
    expect(checker.filter((file) => ours.test(readText(file)))).toEqual([])
  })

  it('says its licence, in every package', () => {
    expect(readText('LICENSE')).toMatch(/^MIT License\n/)
    const manifests = files.filter((file) => /(^|\/)package\.json$/.test(file))
    expect(manifests.length).toBeGreaterThan(5)
    expect(manifests.filter((file) => JSON.parse(readText(file)).license !== 'MIT')).toEqual([])
  })

  it('keeps tests that need a service out of src', () => {
    const tests = files.filter((file) => /^packages\/[\w-]+\/src\/.*\.test\.ts$/.test(file))
    expect(tests.length).toBeGreaterThan(50)
    expect(tests.filter((file) => /from 'webmq-services'/.test(readText(file)))).toEqual([])
  })
})

function git(...args: readonly string[]): string[] {
  return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim().split('\n')
}

function readText(file: string): string {
  return readFileSync(ROOT + file, 'utf8')
}

function filesThatRepeatTheirFolder(paths: readonly string[]): string[] {
  return paths.filter((path) => {
    const [file = '', folder = ''] = path.split('/').reverse()
    return folder !== '' && (file.startsWith(`${folder}-`) || file.startsWith(`${folder}_`))
  })
}

/** Rows of the table under "Code map": the second cell. */
function codeMap(text: string): string[] {
  const section = text.split('\n## Code map\n')[1]?.split('\n## ')[0] ?? ''
  const rows = section.split('\n').filter((line) => line.startsWith('|'))
  return rows.slice(2).map((row) => row.split('|')[2] ?? '')
}

/** Paths from the repository's root in a cell; `{a,b}` is expanded, and `<name>` stands for anything. */
function pathsOf(cell: string): string[] {
  const names = [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
  return names
    .filter((name) => /^(packages|clients|docs|examples|scripts|test|deploy)(\/|$)/.test(name))
    .flatMap(expand)
}

function expand(path: string): string[] {
  const [, before = '', choices, after = ''] = path.match(/^([^{]*)\{([^}]*)\}(.*)$/) ?? []
  if (choices === undefined) return [path]
  return choices.split(',').flatMap((choice) => expand(before + choice + after))
}

function isThere(path: string): boolean {
  if (!/[<*]/.test(path)) return existsSync(ROOT + path)
  const parts = path.split(/<[^>]*>|\*/).map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&'))
  const pattern = new RegExp(`^${parts.join('[^/]*')}`)
  return files.some((file) => pattern.test(file))
}
