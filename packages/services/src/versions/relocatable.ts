import { chmod, lstat, mkdir, open, readdir, readFile, rename, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { ServiceError } from '../service-error.js'

const LINKER = /^ld-linux.*\.so\.\d+$/
const PROGRAM_FOLDER = /(^|\/)s?bin(\/|$)/
const SHARED_LIBRARY = /\.so(\.|$)/
const ELF = Buffer.from('\x7fELF', 'latin1')
/** Renamed programs; links to the linker named after them, which is what a system calls their processes. */
const REAL_SUFFIX = '.real'
const LINKERS = 'linkers'
/** Erlang's scripts say where they are installed. */
const ERLANG_HOME = '/usr/lib/erlang'
const MAX_SCRIPT_BYTES = 64 * 1024

/**
 * Makes the programs of an unpacked system run where it is, with its own C library. Each becomes a script that starts it
 * by the dynamic linker beside it. The script becomes the program (`exec`), so that signals, process ids and names are
 * those of the program. Unlike `chroot` this needs no root and no `/proc`, and sees the folders of the machine.
 * @param root Where it is now.
 * @param place Where it will be.
 * @throws {ServiceError} when it has no dynamic linker.
 */
export async function makeRelocatable(root: string, place: string): Promise<void> {
  const linker = await findLinker(root)
  await mkdir(path.join(root, LINKERS))
  const names = new Set<string>()
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    const folder = path.relative(root, entry.parentPath)
    if (!PROGRAM_FOLDER.test(folder) || SHARED_LIBRARY.test(entry.name)) continue
    // Debian's redis-server is a link to redis-check-rdb, which looks at the name that it is called by.
    if (entry.isSymbolicLink()) names.add(entry.name)
    if (!entry.isFile()) continue
    const file = path.join(root, folder, entry.name)
    const head = await headOf(file)
    if (head.subarray(0, ELF.length).equals(ELF)) {
      await rename(file, `${file}${REAL_SUFFIX}`)
      const [linkers, libraries, real] = [
        path.join(place, LINKERS),
        path.join(place, path.dirname(linker)),
        path.join(place, folder, `${entry.name}${REAL_SUFFIX}`),
      ].map(quoted)
      const script = `#!/bin/sh\nexec ${linkers}/"\${0##*/}" --argv0 "$0" --library-path ${libraries} ${real} "$@"\n`
      await writeFile(file, script, { mode: 0o755 })
      names.add(entry.name)
    } else if (head.toString('latin1').startsWith('#!') && (await lstat(file)).size <= MAX_SCRIPT_BYTES) {
      await replaceInScript(file, place)
    }
  }
  for (const name of names) await symlink(path.join('..', linker), path.join(root, LINKERS, name))
}

/** Its path from the root: `usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2`, in the folder of all libraries. */
async function findLinker(root: string): Promise<string> {
  const folder = path.join('usr', 'lib')
  for (const machine of (await readdir(path.join(root, folder))).filter((name) => name.endsWith('-linux-gnu'))) {
    const name = (await readdir(path.join(root, folder, machine))).find((each) => LINKER.test(each))
    if (name !== undefined) return path.join(folder, machine, name)
  }
  throw new ServiceError(`${root} has no dynamic linker`)
}

async function headOf(file: string): Promise<Buffer> {
  const handle = await open(file)
  try {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(ELF.length), 0, ELF.length, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await handle.close()
  }
}

/** For a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

async function replaceInScript(file: string, place: string): Promise<void> {
  const text = await readFile(file, 'utf8')
  const replaced = text.replaceAll(ERLANG_HOME, path.join(place, ERLANG_HOME))
  if (replaced === text) return
  await writeFile(file, replaced)
  await chmod(file, 0o755)
}
