import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { invalidOption } from '../../../kernel/base/invalid-option.js'
import { codeOf } from '../../../kernel/base/reason.js'

const ROOT = 0
/** A folder that everybody sees. */
const FOLDER_MODE = 0o755

/** Makes a folder, or takes one that is there. Root gives its own, empty or not, to a user: `1000:1000`. */
export function makeFolder(folder: string, user: string | undefined): void {
  mkdirSync(folder, { recursive: true })
  const [uid = ROOT, gid = ROOT] = user?.split(':').map(Number) ?? []
  if (user !== undefined && process.getuid?.() === ROOT && folderAt(folder)?.uid === ROOT) chownSync(folder, uid, gid)
}

/**
 * Does something in a folder as the user that it belongs to: this user may put a link there in the place of a file, which root
 * would follow. Only root needs that.
 * @param act Gets the path of the folder, for this call alone.
 * @throws {WebMQError} `E_OPTION_INVALID`: somebody else has linked the folder, or its owner may not do that.
 */
export function asOwnerOf<T>(folder: string, act: (root: string) => T): T {
  const { uid = ROOT, gid = ROOT } = folderAt(folder) ?? {}
  const { getuid, getegid, getgroups, setgroups, setegid, seteuid } = process
  if (getuid?.() !== ROOT || uid === ROOT || !(getegid && getgroups && setgroups && setegid && seteuid))
    return act(folder)
  const before = { folder: process.cwd(), gid: getegid(), groups: getgroups() }
  // The owner may not see the folders above, such as /root.
  process.chdir(folder)
  try {
    setgroups([])
    setegid(gid)
    seteuid(uid)
    return act('.')
  } catch (cause) {
    throw invalidOption(`${folder}: its owner, user ${uid}, may not do that (${codeOf(cause)})`, cause)
  } finally {
    seteuid(ROOT)
    setegid(before.gid)
    setgroups(before.groups)
    process.chdir(before.folder)
  }
}

/** What is there. An own link leads where the operator wants it, such as to another disk. */
function folderAt(folder: string): Stats | undefined {
  const found = lstatSync(folder, { throwIfNoEntry: false })
  const isOwnLink = found?.isSymbolicLink() === true && found.uid === (process.getuid?.() ?? ROOT)
  const there = isOwnLink ? statSync(folder, { throwIfNoEntry: false }) : found
  if (there !== undefined && !there.isDirectory()) throw invalidOption(`${folder} is not a folder`)
  return there
}

/** Writes a file of a folder. It takes the place of a file or a link that is there. */
export function writeIn(root: string, name: string, text: string, mode: number): void {
  const file = path.join(root, name)
  const made = mkdirSync(path.dirname(file), { recursive: true })
  // Services have users of their own, and must see the files whatever the umask is.
  for (let each = path.dirname(file); made !== undefined && each.length >= made.length; each = path.dirname(each)) {
    chmodSync(each, FOLDER_MODE)
  }
  const next = `${file}.new`
  rmSync(next, { force: true })
  writeFileSync(next, text, { mode, flag: 'wx' })
  // The umask narrows the mode.
  chmodSync(next, mode)
  renameSync(next, file)
}
