import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { partOf, released } from '../scripts/release/changelog.mjs'
import { withVersion, withVersions } from '../scripts/release/crates.mjs'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const STAGED = join(ROOT, '.cache', 'release')

const readText = (file: string) => readFileSync(join(ROOT, file), 'utf8')
const run = (...args: readonly string[]) => spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' })

describe('the changelog', () => {
  const text = '# Changelog\n\n## Unreleased\n\n- New.\n\n## 0.1.0 (2026-01-01)\n\n- Old.\n'

  it('gets the heading of a version above what was unreleased', () => {
    const next = released(text, '0.2.0', '2026-02-02')
    expect(next).toContain('## Unreleased\n\n## 0.2.0 (2026-02-02)\n\n- New.\n\n## 0.1.0')
    expect(partOf(next, '0.2.0')).toBe('- New.')
    expect(partOf(next, '0.1.0')).toBe('- Old.')
    expect(partOf(next, '0.3.0')).toBeUndefined()
  })

  it('is refused when it has nothing unreleased', () => {
    expect(() => released(released(text, '0.2.0', ''), '0.3.0', '')).toThrow('says nothing')
    expect(() => released('# Changelog\n', '0.2.0', '')).toThrow('no heading')
  })

  it('of this repository can be released', () => {
    expect(partOf(released(readText('CHANGELOG.md'), '9.9.9', 'today'), '9.9.9')?.length).toBeGreaterThan(0)
  })
})

describe('the crates', () => {
  it('get the version of their workspace', () => {
    const before = readText('packages/native/Cargo.toml')
    const after = withVersion(before, '9.9.9')
    expect(after.match(/"9\.9\.9"/g)).toHaveLength(1)
    expect(after.split('\n').length).toBe(before.split('\n').length)
  })

  it('get it in their lock files, and no other crate does', () => {
    const after = withVersions(readText('packages/native/Cargo.lock'), '9.9.9')
    expect(after.match(/"webmq-[\w-]+"\nversion = "9\.9\.9"/g)?.length).toBe(after.match(/"9\.9\.9"/g)?.length)
    for (const name of ['webmq-engine', 'webmq-loadgen']) expect(after).toContain(`name = "${name}"\nversion = "9.9.9"`)
  })
})

/** The files that the versions of a release stand in, in a folder of their own. */
function copyOfVersions(): string {
  const folder = mkdtempSync(join(tmpdir(), 'webmq-versions-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const { stdout } = spawnSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' })
  const wanted =
    /(^|\/)package\.json$|^(\.changeset\/(config|README)|CHANGELOG|pnpm-workspace|scripts\/(lib|release)\/)|Cargo\.(toml|lock)$|^deploy\/(helm\/Chart|kubernetes\/kustomization)\.yaml$/
  for (const file of stdout.split('\n').filter((each) => wanted.test(each)))
    cpSync(join(ROOT, file), join(folder, file))
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  spawnSync('git', ['init', '--quiet'], { cwd: folder })
  return folder
}

describe('the version of a release', () => {
  // Symptom: the first release was 1.0.0, and each minor a major. Cause: changesets make whoever has a bumped package as
  // a peer a major, and the image was ahead of the packages with which it shares its version.
  it('is as large a step as the changesets ask for', () => {
    const folder = copyOfVersions()
    const readCopy = (...place: readonly string[]) => readFileSync(join(folder, ...place), 'utf8')
    const versionsOf = () => {
      const packages = ['client', 'server', 'bench', 'check', 'services'].map((name) => join('packages', name))
      const manifests = [...packages, 'deploy/image', '.'].map(
        (name): string => JSON.parse(readCopy(name, 'package.json')).version,
      )
      const named = ['helm/Chart.yaml', 'kubernetes/kustomization.yaml'].flatMap((name) =>
        [...readCopy('deploy', name).matchAll(/^.*(?:[vV]ersion|newTag): "(\d.*)"$/gm)].map(
          ([, version = '']) => version,
        ),
      )
      expect(named).toHaveLength(3)
      return [...new Set([...manifests, ...named])]
    }
    const [before = ''] = versionsOf()
    const [major = 0, minor = 0, patch = 0] = before.split('.').map(Number)
    const steps = [
      ['patch', `${major}.${minor}.${patch + 1}`],
      ['minor', `${major}.${minor + 1}.0`],
      ['patch', `${major}.${minor + 1}.1`],
      ['minor', `${major}.${minor + 2}.0`],
      ['major', `${major + 1}.0.0`],
    ] as const
    for (const [step, version] of steps) {
      writeFileSync(join(folder, '.changeset/one.md'), `---\n'webmq-server': ${step}\n---\n\nA step.\n`)
      const changelog = join(folder, 'CHANGELOG.md')
      writeFileSync(
        changelog,
        readFileSync(changelog, 'utf8').replace('## Unreleased\n', '## Unreleased\n\n- A step.\n'),
      )
      const { status, stderr, stdout } = spawnSync(process.execPath, ['scripts/release/version.mjs'], {
        cwd: folder,
        encoding: 'utf8',
      })
      expect(status, stdout + stderr).toBe(0)
      expect(versionsOf(), step).toEqual([version])
    }
  })
})

describe('the packages of a release', () => {
  let output = ''
  beforeAll(() => {
    const { stdout, stderr, status } = run('scripts/release/publish.mjs', '--dry-run')
    expect(status, stderr).toBe(0)
    output = stdout
  })
  const manifests = () =>
    readdirSync(STAGED).map((name) => JSON.parse(readFileSync(join(STAGED, name, 'package.json'), 'utf8')))

  it('run nothing when they are installed, and carry no range of the workspace', () => {
    expect(manifests().length).toBeGreaterThan(3)
    for (const manifest of manifests()) {
      expect(manifest).not.toHaveProperty('scripts')
      expect(manifest).not.toHaveProperty('devDependencies')
      expect(JSON.stringify(manifest)).not.toContain('workspace:')
    }
  })

  it('bring the engine of each platform as an optional dependency of exactly their version', () => {
    const native = manifests().find(({ name }) => name === 'webmq-native')
    const ofPlatforms = manifests().filter(({ name }) => /^webmq-native-/.test(name))
    expect(native.optionalDependencies).toEqual(
      Object.fromEntries(ofPlatforms.map(({ name }) => [name, native.version])),
    )
    for (const { name, main, os, cpu, files } of ofPlatforms) {
      expect(name).toContain(`${os[0]}-${cpu[0]}`)
      expect(files).toEqual([main, 'THIRD-PARTY-LICENSES.txt'])
      expect(statSync(join(STAGED, name, main)).size).toBeGreaterThan(100_000)
    }
    expect(readText('packages/native/package.json')).not.toContain('optionalDependencies')
  })

  it('bring the licences of the crates that are linked', () => {
    const ofPlatforms = manifests().filter(({ name }) => /^webmq-(native|bench)-/.test(name))
    expect(ofPlatforms.length).toBeGreaterThan(0)
    for (const { name } of ofPlatforms) {
      const notices = readFileSync(join(STAGED, name, 'THIRD-PARTY-LICENSES.txt'), 'utf8')
      for (const crate of ['ring', 'rustls']) expect(notices).toMatch(new RegExp(`^(?:.*, )?${crate} \\d`, 'm'))
      expect(notices).not.toMatch(/^(?:.*, )?proptest \d/m)
    }
  })

  interface Sbom {
    readonly bomFormat: string
    readonly specVersion: string
    readonly metadata: { readonly component: Component }
    readonly components: readonly Component[]
    readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[]
  }
  interface Component {
    readonly type: string
    readonly 'bom-ref': string
    readonly name: string
    readonly version: string
    readonly purl: string
    readonly licenses: readonly { readonly expression: string }[]
    readonly hashes?: readonly { readonly alg: string; readonly content: string }[]
  }
  const sbomOf = (name: string): Sbom => JSON.parse(readText(`.cache/sbom/${name}.cdx.json`))

  it('have a bill of materials each, which names what npm installs and what is linked', () => {
    const names = [...manifests().map(({ name }): string => name), 'webmq-image']
    expect(readdirSync(join(ROOT, '.cache/sbom')).sort()).toEqual(names.map((name) => `${name}.cdx.json`).sort())
    for (const name of names) {
      const { bomFormat, specVersion, metadata, components, dependencies } = sbomOf(name)
      expect([bomFormat, specVersion, metadata.component.name]).toEqual(['CycloneDX', '1.6', name])
      const all = [metadata.component, ...components]
      const refs = all.map((each) => each['bom-ref'])
      expect(new Set(refs).size).toBe(refs.length)
      for (const { type, purl, name, version, licenses, hashes } of all) {
        if (type === 'container')
          expect(purl).toMatch(/^pkg:oci\/webmq-server\?repository_url=ghcr\.io\/[\w/-]+&tag=[\d.]+$/)
        else {
          expect(purl).toMatch(/^pkg:(npm|cargo)\/(%40[\w.-]+\/)?[\w.-]+@\d+\.\d+\.\d+[\w.+-]*$/)
          expect(purl.endsWith(`${name.replace('@', '%40')}@${version}`)).toBe(true)
        }
        expect(licenses.map(({ expression }) => expression).join(), purl).toMatch(/^[\w .()-]+$/)
        const digits = hashes?.map(({ alg, content }) => `${alg} ${content.length} ${/^[\da-f]+$/.test(content)}`)
        if (name.startsWith('webmq-')) expect(digits).toBeUndefined()
        else expect(digits).toEqual([purl.startsWith('pkg:npm') ? 'SHA-512 128 true' : 'SHA-256 64 true'])
      }
      expect(dependencies.map(({ ref }) => ref).sort()).toEqual(refs.toSorted())
      for (const { dependsOn } of dependencies) for (const ref of dependsOn) expect(refs).toContain(ref)
    }
    const partsOf = (name: string) => sbomOf(name).components.map((each) => each.name)
    expect(partsOf('webmq-client')).toEqual([])
    expect(partsOf('webmq-server')).toEqual(
      expect.arrayContaining(['pino', 'sonic-boom', 'ws', 'jose', 'webmq-client', 'webmq-native', 'ring', 'rustls']),
    )
    expect(partsOf('webmq-image')).toEqual(
      expect.arrayContaining([
        'webmq-server',
        'webmq-broker-redis',
        'ioredis',
        'amqplib',
        '@nats-io/transport-node',
        'pg',
        'rustls',
      ]),
    )
    const platforms = partsOf('webmq-image').filter((name) => /^webmq-native-/.test(name))
    expect(platforms.filter((name) => !/^webmq-native-linux-\w+-gnu$/.test(name))).toEqual([])
    // Neither what only the repository needs, nor optional peers.
    for (const name of ['vitest', 'typescript', 'proptest', 'ioredis'])
      expect(partsOf('webmq-server')).not.toContain(name)
  })

  it('come after those that they need', () => {
    const order = [...output.matchAll(/^ {2}(webmq-[\w-]+)@/gm)].map(([, name]) => name)
    expect(order.length).toBe(manifests().length)
    for (const { name, dependencies = {}, optionalDependencies = {} } of manifests()) {
      for (const needed of Object.keys({ ...dependencies, ...optionalDependencies })) {
        if (order.includes(needed)) expect(order.indexOf(needed)).toBeLessThan(order.indexOf(name))
      }
    }
  })
})

describe('the workflows', () => {
  it('have no mistake that actionlint finds', () => {
    const { stdout, stderr, status } = run('scripts/lint-workflows.mjs', '--no-build')
    expect(status, stdout + stderr).toBe(0)
    const [last = ''] = stdout.trim().split('\n').slice(-1)
    // Without actionlint it says that it was skipped. The workflow builds it.
    console.log(last)
    expect(last).toMatch(/^workflows: /)
  })
})
