// Makes a folder with the C library of Debian 13, for peers whose builds need a newer one than this machine's, and
// prints its path, for WEBMQ_BENCH_PEER_ROOT. It needs apt and Debian's keys, and no root rights; nothing of the
// machine changes. 4 MB to download beside the lists of packages.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const PACKAGES = ['libc6', 'libstdc++6', 'libgcc-s1']
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'
const TIMEOUT_MS = 300_000

const root = path.resolve(fileURLToPath(import.meta.url), '../../../.cache/bench-peer-root')
if (!existsSync(root)) make()
process.stdout.write(`${root}\n`)

function make() {
  const work = `${root}.making`
  rmSync(work, { recursive: true, force: true })
  for (const name of ['lists/partial', 'archives/partial', 'packages'])
    mkdirSync(path.join(work, name), { recursive: true })
  const sources = path.join(work, 'sources.list')
  writeFileSync(sources, `deb [signed-by=${KEYRING}] ${debianUri()} trixie main\n`)
  // Apt's own folders are left alone; as another user it could not write to these.
  const options = {
    'Dir::Etc::SourceList': sources,
    'Dir::Etc::SourceParts': '-',
    'Dir::State::Lists': path.join(work, 'lists'),
    'Dir::Cache': work,
    'APT::Sandbox::User': '',
  }
  const flags = Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`])
  const packages = path.join(work, 'packages')
  run('apt-get', [...flags, '-qq', 'update'], packages)
  run('apt-get', [...flags, '-qq', 'download', ...PACKAGES], packages)
  const unpacked = path.join(work, 'root')
  for (const file of readdirSync(packages)) run('dpkg-deb', ['-x', path.join(packages, file), unpacked], packages)
  renameSync(unpacked, root)
  rmSync(work, { recursive: true })
}

/** Where this machine takes Debian's packages from. */
function debianUri() {
  const format = '$(REPO_URI) $(LABEL)'
  const targets = execFileSync('apt-get', ['indextargets', '--format', format], { encoding: 'utf8' }).split('\n')
  const target = targets.find((line) => line.endsWith(' Debian'))
  if (target === undefined) throw new Error('apt has no source of Debian: is this Debian, after `apt-get update`?')
  return target.slice(0, -' Debian'.length)
}

/** Its output goes to standard error: standard output has the path alone. */
function run(command, args, cwd) {
  execFileSync(command, args, { cwd, stdio: ['ignore', process.stderr, process.stderr], timeout: TIMEOUT_MS })
}
