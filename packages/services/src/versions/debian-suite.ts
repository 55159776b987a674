import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { userCacheFolder } from '../cache-folder.js'
import { withFileLock } from '../file-lock.js'
import { findProgram } from '../find-program.js'
import { ServiceError } from '../service-error.js'
import { makeRelocatable } from './relocatable.js'

const COMMAND_TIMEOUT_MS = 180_000
const LOCK_TIMEOUT_MS = 600_000
const LISTS_FRESH_MS = 600_000
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024
/** apt takes a package only from lists that this has signed. */
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'
/** The mirror for a machine that is not a Debian. */
const MIRROR_VARIABLE = 'WEBMQ_TEST_DEBIAN_MIRROR'
/** Of a program and all that it depends on. The others configure a system. */
const UNPACKED = /^(lib(?!python)|zlib1g|erlang-|[a-z]+-(server|tools)_)/

/**
 * Unpacks a Debian package of any release, and the libraries that it needs, into a folder of the user's cache, once. The
 * system and its package lists stay as they are. Needs no root.
 * @returns the folder, in which the programs are where Debian has them: `usr/bin/redis-server`
 * @throws {ServiceError} with what to do when it cannot be had.
 */
export async function unpackDebianPackage(suite: string, name: string): Promise<string> {
  const home = path.join(userCacheFolder(), `debian-${suite}`)
  const folder = path.join(home, name)
  if (existsSync(folder)) return folder
  await mkdir(home, { recursive: true })
  await withFileLock(path.join(home, 'lock'), LOCK_TIMEOUT_MS, async () => {
    if (existsSync(folder)) return
    const apt = path.join(home, 'apt')
    const unpacked = path.join(home, `${name}.new`)
    await rm(unpacked, { recursive: true, force: true })
    await download(apt, await sourceOf(suite), name)
    const archives = path.join(apt, 'archives')
    for (const file of (await readdir(archives)).filter((each) => UNPACKED.test(each) && each.endsWith('.deb'))) {
      await run('dpkg-deb', ['-x', path.join(archives, file), unpacked])
    }
    await rm(archives, { recursive: true })
    await rm(path.join(unpacked, 'usr', 'share'), { recursive: true, force: true })
    await makeRelocatable(unpacked, folder)
    await rename(unpacked, folder)
  })
  return folder
}

/** A line of sources.list: the system's mirror with another release. @throws {ServiceError} without one. */
async function sourceOf(suite: string): Promise<string> {
  const missing = ['apt-get', 'dpkg-deb'].find((program) => findProgram(program) === undefined)
  if (missing !== undefined) throw new ServiceError(`packages of Debian need ${missing} on PATH`)
  if (!existsSync(KEYRING)) {
    throw new ServiceError(`packages of Debian need ${KEYRING}: install the package debian-archive-keyring`)
  }
  const mirror = process.env[MIRROR_VARIABLE] || (await mirrorOfSystem())
  if (mirror === undefined) {
    throw new ServiceError(
      `the system has no mirror of Debian among its sources: give the URL of one in ${MIRROR_VARIABLE}`,
    )
  }
  return `deb [signed-by=${KEYRING}] ${mirror} ${suite} main\n`
}

/** apt reads both forms of sources. A release has no dash in its name; updates, backports and security have one. */
async function mirrorOfSystem(): Promise<string | undefined> {
  const format = ['--format', '$(ORIGIN) $(COMPONENT) $(RELEASE) $(REPO_URI)']
  const targets = await run('apt-get', ['indextargets', ...format, 'Created-By: Packages'])
  return /^Debian main [a-z]+ (\S+)$/m.exec(targets)?.[1]
}

/** With lists and a cache of its own, for a system on which nothing is installed. */
async function download(apt: string, source: string, name: string): Promise<void> {
  const inApt = (file: string) => path.join(apt, file)
  for (const each of ['lists/partial', 'archives/partial', 'none']) await mkdir(inApt(each), { recursive: true })
  await writeFile(inApt('sources.list'), source)
  await writeFile(inApt('status'), '')
  const settings = {
    'Dir::Etc::Parts': inApt('none'),
    'Dir::Etc::Main': '/dev/null',
    'Dir::Etc::SourceList': inApt('sources.list'),
    'Dir::Etc::SourceParts': inApt('none'),
    'Dir::State': apt,
    'Dir::State::Lists': inApt('lists'),
    'Dir::State::status': inApt('status'),
    'Dir::Cache': apt,
    'Dir::Cache::Archives': inApt('archives'),
    'Dir::Cache::pkgcache': '',
    'Dir::Cache::srcpkgcache': '',
    'Acquire::Languages': 'none',
    'Acquire::GzipIndexes': 'true',
    'APT::Sandbox::User': process.getuid?.() === 0 ? 'root' : '',
  }
  // How to reach the mirror is the system's; what it runs after an update is not wanted.
  const lines = Object.entries(settings).map(([key, value]) => `${key} "${value}";\n`)
  await writeFile(inApt('apt.conf'), `${await run('apt-config', ['dump', 'Acquire'])}${lines.join('')}`)
  const env = { ...process.env, APT_CONFIG: inApt('apt.conf'), DEBIAN_FRONTEND: 'noninteractive' }
  if (!(await areFresh(inApt('lists')))) await run('apt-get', ['update', '--error-on=any'], env)
  await run('apt-get', ['install', '--download-only', '--yes', '--no-install-recommends', name], env)
}

/** Whether package lists have just been fetched, for another package of the release. */
async function areFresh(lists: string): Promise<boolean> {
  const names = (await readdir(lists)).filter((name) => name.includes('_Packages'))
  const ages = await Promise.all(names.map(async (name) => Date.now() - (await stat(path.join(lists, name))).ctimeMs))
  return ages.length > 0 && Math.max(...ages) < LISTS_FRESH_MS
}

async function run(command: string, args: readonly string[], env = process.env): Promise<string> {
  try {
    const options = { env, timeout: COMMAND_TIMEOUT_MS, maxBuffer: MAX_OUTPUT_BYTES }
    return (await promisify(execFile)(command, args, options)).stdout
  } catch (cause) {
    throw new ServiceError(`${command} ${args.join(' ')}: ${String(cause).slice(-2_000)}`, cause)
  }
}
