import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { readRows } from '../../scripts/lib/version-rows.mjs'
import { ROOT, readJson, readText } from './files.js'

/** An image in one version: a tag that names a correction, and its digest once Renovate has added it. */
const PINNED = /^(?<name>[\w./-]+):v?(?<version>\d+\.\d+\.\d+)(?:-[a-z][\w.]*(?:-[a-z]\w*)*)?(?:@sha256:[\da-f]{64})?$/
/** The name of a broker's image, and of the broker in docs/versions.json. */
const BROKERS = { rabbitmq: 'RabbitMQ', redis: 'Redis', nats: 'NATS' }

const minorOf = (version: string) => version.split('.').slice(0, 2).join('.')

// Symptom: what `docker compose up` ran, and what an image was built from, was another program each week. Cause: tags
// such as redis:7-alpine and node:22 move.
describe('images', () => {
  const tracked = (...patterns: readonly string[]) =>
    execFileSync('git', ['ls-files', ...patterns], { cwd: ROOT, encoding: 'utf8' })
      .trim()
      .split('\n')
  const named = tracked('*.yaml', '*.yml').flatMap((file) =>
    [...readText(file).matchAll(/^\s*(?:- )?image: *["']?([^"'\s]+)/gm)].map(([, image = '']) => image),
  )
  /** Not ours, which are built: from the Dockerfile, in the version of the chart or of who deploys. */
  const ofOthers = named.filter((image) => !/^webmq|\{\{|@[A-Z]+@/.test(image))
  const bases = tracked('*Dockerfile').flatMap((file) => {
    const stages = [...readText(file).matchAll(/^FROM (\S+)(?: AS (\w+))?$/gm)]
    const images = stages.map(([, image = '']) => image)
    // OSS-Fuzz has one image, without versions.
    return images.filter(
      (image) => !image.startsWith('gcr.io/oss-fuzz-base/') && !stages.some(([, , as]) => as === image),
    )
  })

  it('are of one version each', () => {
    expect(ofOthers).toEqual(expect.arrayContaining([expect.stringMatching(/^haproxy:/)]))
    expect(new Set(bases).size, 'one of Node, one of Rust').toBe(2)
    expect([...ofOthers, ...bases].filter((image) => !PINNED.test(image))).toEqual([])
    for (const floating of ['redis:8-alpine', 'redis:8.0-alpine', 'nats', 'node:22-bookworm-slim', 'rabbitmq:latest'])
      expect(PINNED.test(floating), floating).toBe(false)
    expect(PINNED.test(`node:22.23.3-bookworm-slim@sha256:${'0'.repeat(64)}`)).toBe(true)
  })

  it.each(Object.entries(BROKERS))(
    'of %s are of a release that is played, with no correction missing',
    (name, broker) => {
      const versions = ofOthers.flatMap((image) => {
        const { groups } = PINNED.exec(image) ?? {}
        return groups?.name === name ? [groups.version ?? ''] : []
      })
      const [version = ''] = versions
      expect(new Set(versions).size, 'one in all files').toBe(1)
      const rows = readRows().filter((row) => row.broker === broker && minorOf(row.version) === minorOf(version))
      expect(rows, version).not.toEqual([])
      for (const row of rows) expect(row.version.localeCompare(version, 'en', { numeric: true })).not.toBe(1)
    },
  )

  it('get digests and corrections from Renovate, and no other minor version of a broker', () => {
    const { extends: presets, packageRules } = readJson('.github/renovate.json')
    expect(presets).toEqual(expect.arrayContaining(['docker:pinDigests', 'helpers:pinGitHubActionDigestsToSemver']))
    expect(packageRules).toContainEqual(
      expect.objectContaining({
        matchManagers: ['docker-compose'],
        matchUpdateTypes: ['major', 'minor'],
        enabled: false,
      }),
    )
  })

  it('have the Rust of the workflows', () => {
    const [, version] = readText('.github/workflows/ci.yml').match(/RUSTUP_TOOLCHAIN: (\S+)/) ?? []
    expect(bases.map((image) => image.split('@')[0])).toContain(`rust:${version}-slim-bookworm`)
  })
})
