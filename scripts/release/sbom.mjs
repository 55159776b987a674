import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { parse } from 'yaml'
import { ROOT, StepError } from '../lib/steps.mjs'
import { linkedCrates, metadataOf } from './crates-of.mjs'
import { WITH_PLATFORM_PACKAGES } from './platform-packages.mjs'

const STORE = path.join(ROOT, 'node_modules', '.pnpm')

const IMAGE = 'deploy/image'
const IMAGE_URL = 'ghcr.io/webmq/webmq-server'
/** Packages of platforms that the image is not built for. */
const NOT_IN_IMAGE = /^pkg:npm\/webmq-native-(?!linux-\w+-gnu@)/

/**
 * The bills of materials of a release, one per package and one of the image: CycloneDX 1.6 as JSON. They have what npm
 * installs with the package by itself, and of a platform package the crates that are linked into its program; no optional
 * peers. Names, versions and hashes are those of the lock files, licences those of the packages. The same release gives
 * the same bytes. That of the image has what is added to its base.
 * @param {readonly import('./stage.mjs').Staged[]} staged
 * @returns {Map<string, object>} by package, and `webmq-image`
 */
export function sbomsOf(staged) {
  const lock = parse(readFileSync(path.join(ROOT, 'pnpm-lock.yaml'), 'utf8'))
  const own = new Map(staged.map((each) => [each.name, JSON.parse(read(each.folder, 'package.json'))]))
  const boms = new Map(
    [...own.values()].map((manifest) => [manifest.name, sbomOf(ownComponent(manifest), needsOf(manifest, own, lock))]),
  )
  const image = { ...JSON.parse(read(ROOT, IMAGE, 'package.json')), repository: { directory: IMAGE } }
  const needs = needsOf(image, own, lock)
  return boms.set(image.name, sbomOf(imageComponent(image), needs, NOT_IN_IMAGE))
}

function imageComponent({ name, version, license }) {
  const purl = `pkg:oci/webmq-server?repository_url=${IMAGE_URL}&tag=${version}`
  return { type: 'container', 'bom-ref': purl, name, version, licenses: licencesOf(license), purl }
}

/** @param {RegExp} [left] What is no part of it, by reference. */
function sbomOf(root, needed, left = /^$/) {
  const parts = new Map([[root['bom-ref'], { component: root, needs: needed }]])
  // A map goes on with what is added to it meanwhile.
  for (const part of parts.values()) {
    part.needs = part.needs.filter(({ ref }) => !left.test(ref))
    for (const need of part.needs) if (!parts.has(need.ref)) parts.set(need.ref, need.read())
  }
  const [, ...components] = [...parts.values()].map(({ component }) => component)
  const dependencies = [...parts].map(([ref, { needs }]) => ({ ref, dependsOn: needs.map((need) => need.ref).sort() }))
  const tools = { components: [{ type: 'application', name: 'webmq-release', version: root.version }] }
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { tools, component: root },
    components,
    dependencies,
  }
}

/** What a package of ours needs: each with its reference, and how to read it. */
function needsOf(manifest, own, lock) {
  const platformOf = Object.keys(WITH_PLATFORM_PACKAGES).find((name) => manifest.name.startsWith(`${name}-`))
  if (platformOf !== undefined) return cratesOf(platformOf)
  const names = Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })
  const resolved = lock.importers[manifest.repository.directory].dependencies ?? {}
  return names.map((name) => {
    const sibling = own.get(name)
    if (sibling === undefined) return npmNeed(name, resolved[name].version, lock)
    const read = () => ({ component: ownComponent(sibling), needs: needsOf(sibling, own, lock) })
    return { ref: npmUrl(name, sibling.version), read }
  })
}

function ownComponent({ name, version, license }) {
  const purl = npmUrl(name, version)
  return { type: 'library', 'bom-ref': purl, name, version, licenses: licencesOf(license), purl }
}

/** @param {string} resolved The version, and the peers with which pnpm has resolved it. */
function npmNeed(name, resolved, lock) {
  const [version] = resolved.split('(')
  const ref = npmUrl(name, version)
  const read = () => {
    const { dependencies, optionalDependencies } = lock.snapshots[`${name}@${resolved}`]
    const needs = Object.entries({ ...dependencies, ...optionalDependencies })
    const [algorithm, hash] = lock.packages[`${name}@${version}`].resolution.integrity.split('-')
    const hashes = [{ alg: algorithm.replace('sha', 'SHA-'), content: Buffer.from(hash, 'base64').toString('hex') }]
    const licenses = licencesOf(licenceOf(name, version))
    return {
      component: { type: 'library', 'bom-ref': ref, name, version, hashes, licenses, purl: ref },
      needs: needs.map(([needed, at]) => npmNeed(needed, at, lock)),
    }
  }
  return { ref, read }
}

/** Where pnpm has put it. */
function licenceOf(name, version) {
  const folder = readdirSync(STORE).find((each) => `${each}_`.startsWith(`${name.replace('/', '+')}@${version}_`))
  if (folder === undefined) throw new StepError(`${name}@${version} is not installed.`)
  return JSON.parse(read(STORE, folder, 'node_modules', name, 'package.json')).license
}

function cratesOf(name) {
  const [manifest, program] = WITH_PLATFORM_PACKAGES[name].crate
  const checksums = new Map(
    [
      ...read(ROOT, manifest.replace('.toml', '.lock')).matchAll(
        /^name = "(.+)"\nversion = "(.+)"\nsource = .+\nchecksum = "(\w+)"$/gm,
      ),
    ].map(([, crate, version, checksum]) => [`${crate}@${version}`, checksum]),
  )
  return linkedCrates(metadataOf(manifest), program).map(({ name, version, license }) => {
    const purl = `pkg:cargo/${name}@${version}`
    const checksum = checksums.get(`${name}@${version}`)
    const component = {
      type: 'library',
      'bom-ref': purl,
      name,
      version,
      // Our own crates are in no registry.
      ...(checksum && { hashes: [{ alg: 'SHA-256', content: checksum }] }),
      licenses: licencesOf(license),
      purl,
    }
    return { ref: purl, read: () => ({ component, needs: [] }) }
  })
}

/** An expression of SPDX. Old crates write `MIT/Apache-2.0`. */
function licencesOf(license) {
  if (typeof license !== 'string') return []
  return [{ expression: license.replaceAll('/', ' OR ') }]
}

/** @see https://github.com/package-url/purl-spec */
function npmUrl(name, version) {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`
}

function read(...place) {
  return readFileSync(path.join(...place), 'utf8')
}
