import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { REPOSITORY_URL } from 'webmq-client/protocol'
import { parse as parseYaml } from 'yaml'

interface Manifest {
  readonly name: string
  readonly private?: boolean
  readonly engines?: { readonly node?: string }
  readonly dependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
  readonly supportedPeers?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly [field: string]: unknown
}

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const NODE = '20.19'

/** What users get. The others serve the tests of this repository. */
const PUBLISHED = [
  'bench',
  'broker-nats',
  'broker-rabbitmq',
  'broker-redis',
  'check',
  'client',
  'native',
  'outbox-postgres',
  'server',
  'services',
  'transport-uws',
]

/** Dependencies at one exact version, with the reason. */
const PINNED: Readonly<Record<string, string>> = {
  'webmq-native': 'the server and its engine speak over memory whose layout may change with any release',
}

/** Documents with a table of the versions of peers: name, oldest, tested, first that is not supported. */
const LISTED: Readonly<Record<string, string>> = { client: 'docs/client.md', server: 'docs/operations.md' }

const readText = (file: string) => readFileSync(ROOT + file, 'utf8')
const readManifest = (folder: string) => JSON.parse(readText(`${folder}/package.json`)) as Manifest
const folders = readdirSync(`${ROOT}packages`).filter((name) => existsSync(`${ROOT}packages/${name}/package.json`))
const manifests = folders.map((name) => [name, readManifest(`packages/${name}`)] as const)
const published = manifests.filter(([, manifest]) => manifest.private !== true)

describe('the packages', () => {
  it('are published when users need them, and only then', () => {
    expect(published.map(([name]) => name)).toEqual(PUBLISHED)
  })

  it('need the Node that the build and the docs name', () => {
    const all = [readManifest('.'), ...manifests.map(([, manifest]) => manifest)]
    expect(all.map(({ name, engines }) => [name, engines?.node])).toEqual(all.map(({ name }) => [name, `>=${NODE}`]))
    expect(readText('scripts/lib/build.mjs')).toContain(`MIN_NODE = [${NODE.replace('.', ', ')}]`)
    expect(readText('README.md')).toContain(`Node.js ${NODE} or newer`)
    expect(readText('packages/client/README.md')).toContain(`Node ${NODE} and later`)
  })
})

describe.each(published)('the package of %s', (folder, manifest) => {
  it('says what it is, where it comes from, and where to ask', () => {
    expect(manifest).toMatchObject({
      name: `webmq-${folder}`,
      description: expect.stringMatching(/^\S.{30,}\S$/),
      license: 'MIT',
      homepage: `${REPOSITORY_URL}/tree/main/packages/${folder}#readme`,
      bugs: { url: `${REPOSITORY_URL}/issues` },
      repository: { type: 'git', url: `git+${REPOSITORY_URL}.git`, directory: `packages/${folder}` },
      publishConfig: { access: 'public', provenance: true },
      files: expect.any(Array),
      exports: { './package.json': './package.json' },
    })
    expect(manifest.keywords).toEqual(expect.arrayContaining(['websocket']))
  })

  it('has its licence and its README', () => {
    expect(readText(`packages/${folder}/LICENSE`)).toBe(readText('LICENSE'))
    expect(readText(`packages/${folder}/README.md`)).toMatch(new RegExp(`^# webmq-${folder}\n`))
  })

  it('takes compatible versions of what it needs, unless there is a reason', () => {
    const ranges = Object.entries({ ...manifest.dependencies, ...manifest.peerDependencies })
    const exact = ranges.filter(([, range]) => /^\d|^workspace:\*/.test(range)).map(([name]) => name)
    expect(exact.filter((name) => !Object.hasOwn(PINNED, name))).toEqual([])
  })

  it('needs no package that is not published', () => {
    const ours = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }).filter((name) =>
      name.startsWith('webmq-'),
    )
    expect(ours.filter((name) => !PUBLISHED.includes(name.slice('webmq-'.length)))).toEqual([])
  })

  // npm refuses to install beside another version of a peer, also when the peer is optional and nobody uses it.
  it('forces no peer and no version of a peer on anybody', () => {
    const peers = Object.entries(manifest.peerDependencies ?? {})
    expect(peers.filter(([, range]) => range !== '*')).toEqual([])
    expect(peers.filter(([name]) => manifest.peerDependenciesMeta?.[name]?.optional !== true)).toEqual([])
  })
})

describe.each(published.filter(([name]) => LISTED[name] !== undefined))('the peers of %s', (folder, manifest) => {
  const { peerDependencies = {}, supportedPeers = {}, devDependencies = {} } = manifest
  const foreign = Object.keys(peerDependencies).filter((name) => !name.startsWith('webmq-'))

  it('are supported from one version to another', () => {
    expect(Object.keys(supportedPeers)).toEqual(foreign)
    for (const range of Object.values(supportedPeers)) expect(range).toMatch(/^>=\d+\.\d+\.\d+ <\d+\.\d+\.\d+$/)
  })

  it.each(foreign)('the documentation says which versions of %s', (name) => {
    const [, oldest, before] = /^>=(\S+) <(\S+)$/.exec(supportedPeers[name] ?? '') ?? []
    const tested = devDependencies[name] ?? ''
    expect(tested.localeCompare(before ?? '', 'en', { numeric: true })).toBe(-1)
    const document = readText(LISTED[folder] ?? '')
    expect(document).toMatch(new RegExp(`^\\| \`${name}\` \\| ${oldest} \\| ${tested} \\| ${before} \\|`, 'm'))
  })
})

interface Lock {
  readonly importers: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, { version: string }>>>>>>
  readonly packages: Readonly<Record<string, { readonly engines?: { readonly node?: string } }>>
  readonly snapshots: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, string>>>>>>
}

// Symptom: npm on Node 20 warns of EBADENGINE when it installs the broker for NATS, and refuses it with engine-strict.
// Cause: a library two levels down asks for Node 22.
describe('what npm installs with a package', () => {
  const lock: Lock = parseYaml(readText('pnpm-lock.yaml'))
  /** The oldest that the packages name, and the oldest of the newer ones that the checks play. */
  const NODES = ['20.19.0', '22.12.0', '24.0.0']
  /** Peers that ask for more, which ADR 67 allows: an application installs them by itself. */
  const NEWER = ['ai', '@ai-sdk/react']

  /** Packages of the lock file, with all that they need. Our own are walked by their own tests. */
  function withNeeds(first: readonly string[]): ReadonlySet<string> {
    const found = new Set(first)
    for (const each of found) {
      const { dependencies, optionalDependencies } = lock.snapshots[each] ?? {}
      for (const [name, version] of Object.entries({ ...dependencies, ...optionalDependencies }))
        found.add(`${name}@${version}`)
    }
    return found
  }
  const refused = (packages: Iterable<string>) =>
    [...packages].flatMap((each) => {
      const range = lock.packages[each.replace(/\(.*/, '')]?.engines?.node ?? '*'
      const missing = NODES.filter((version) => !allows(range, version))
      return missing.length === 0 ? [] : [`${each} asks for Node ${range}, which leaves out ${missing.join()}`]
    })
  const foreign = (versions: Readonly<Record<string, { version: string }>> = {}) =>
    Object.entries(versions).flatMap(([name, { version }]) =>
      version.startsWith('link:') ? [] : [`${name}@${version}`],
    )

  it('is read as npm reads it', () => {
    expect(['>= 22.x', '22 || 24', '^18.0.0', '>=21 <25'].filter((range) => allows(range, '20.19.0'))).toEqual([])
    for (const range of [
      '*',
      '>=18',
      '^14.21.3 || >=16',
      '18 || 20 || >=22',
      '>=20.19.0 <21',
      '>= 6',
      '20.x',
      '^20.9.0',
    ])
      expect(allows(range, '20.19.0'), range).toBe(true)
    expect(() => allows('latest', '20.19.0')).toThrow('latest')
  })

  it.each(published)('runs on each Node that %s names', (folder, { peerDependencies = {} }) => {
    const { dependencies, optionalDependencies, devDependencies = {} } = lock.importers[`packages/${folder}`] ?? {}
    expect(refused(withNeeds(foreign({ ...dependencies, ...optionalDependencies })))).toEqual([])
    // Optional peers in the version that is tested.
    const peers = Object.entries(devDependencies).filter(
      ([name]) => Object.hasOwn(peerDependencies, name) && !NEWER.includes(name),
    )
    expect(refused(withNeeds(foreign(Object.fromEntries(peers))))).toEqual([])
  })
})

/** Whether a range of npm has a version: alternatives of bounds, carets, tildes and versions in part. */
function allows(range: string, version: string): boolean {
  const numbersOf = (text: string) =>
    text
      .split('.')
      .filter((part) => /^\d+$/.test(part))
      .map(Number)
  const given = numbersOf(version)
  return range.split('||').some((alternative) => {
    const bounds = alternative
      .trim()
      .replaceAll(/([<>=^~]+)\s+/g, '$1')
      .split(/\s+/)
    return bounds.every((bound) => {
      const [, sign = '', text = ''] = /^([<>]=?|[=^~]?)v?((?:\d+|x|\*)(?:\.(?:\d+|x|\*))*)$/.exec(bound) ?? []
      if (text === '') throw new Error(`the range ${range} has ${bound}`)
      const numbers = numbersOf(text)
      const order = Math.sign(numbers.map((each, index) => (given[index] ?? 0) - each).find((each) => each !== 0) ?? 0)
      if (sign === '>' || sign === '<') return order === (sign === '>' ? 1 : -1)
      if (sign === '>=' || sign === '<=') return order !== (sign === '>=' ? -1 : 1)
      const fixed = sign === '^' ? 1 : sign === '~' ? Math.min(2, numbers.length) : numbers.length
      return order !== -1 && numbers.slice(0, fixed).every((each, index) => each === given[index])
    })
  })
}
