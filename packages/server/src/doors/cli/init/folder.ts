import { chmodSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { WebMQError } from 'webmq-client/protocol'
import { invalidOption } from '../../../kernel/base/invalid-option.js'
import { codeOf } from '../../../kernel/base/reason.js'
import { note, type Terminal } from '../terminal.js'
import type { BrokerName } from './brokers.js'
import type { Kind, Values } from './kinds.js'
import { asOwnerOf, makeFolder, writeIn } from './own-folder.js'
import { type InitFlags, type Installation, installationOf } from './values.js'

const TEMPLATES = fileURLToPath(new URL('../../../../templates', import.meta.url))
const DEPLOY = path.join(TEMPLATES, 'deploy')

/** Folders of templates; a file of each has its place in the installation. `machines`: where a proxy of ours runs. */
const LAYERS: Readonly<Record<Kind, readonly string[]>> = {
  systemd: ['all', 'machines', 'systemd'],
  compose: ['all', 'machines', 'image', 'compose'],
  helm: ['all', 'image', 'helm'],
}

/** The same, for one broker: its own rules where Prometheus is ours. */
const OF_DEPLOY_FOR: Readonly<
  Partial<Record<`${Kind}-${BrokerName}`, readonly (readonly [to: string, from: string])[]>>
> = {
  'systemd-rabbitmq': [['prometheus/rabbitmq.rules.yml', 'prometheus/rabbitmq.rules.yml']],
  'compose-rabbitmq': [['prometheus/rabbitmq.rules.yml', 'prometheus/rabbitmq.rules.yml']],
}

/** What installations have of `deploy/` of the repository, as it is there: in the package a copy, made by the build. */
const OF_DEPLOY: Readonly<Record<Kind, readonly (readonly [to: string, from: string])[]>> = {
  systemd: [
    ['prometheus/webmq.rules.yml', 'prometheus/webmq.rules.yml'],
    ['grafana/boards/webmq.json', 'grafana/webmq.json'],
    ['systemd/webmq@.service', 'systemd/webmq.service'],
  ],
  compose: [
    ['prometheus/webmq.rules.yml', 'prometheus/webmq.rules.yml'],
    ['grafana/boards/webmq.json', 'grafana/webmq.json'],
    ['image/defaults.json', 'image/defaults.json'],
    ['image/healthy.sh', 'image/healthy.sh'],
  ],
  helm: [
    ['grafana/boards/webmq.json', 'grafana/webmq.json'],
    ['image/defaults.json', 'image/defaults.json'],
    ['image/healthy.sh', 'image/healthy.sh'],
    ['chart', 'helm'],
  ],
}

const SECRETS = 'secrets'
/** A folder that only its owner enters, with files that only its owner reads. */
const SECRET_FOLDER_MODE = 0o700
const SECRET_MODE = 0o600
const MODE = 0o644
const DATA = 'data'

/**
 * Writes an installation into a folder, and says what to do next.
 * @throws {WebMQError} `E_OPTION_INVALID`: a flag is not allowed, a file is there already, or one cannot be written.
 */
export function writeFolder(kind: string, folderText: string, flags: InitFlags, terminal: Terminal): void {
  const kept = (name: string, folder: string) =>
    flags.force === true ? asOwnerOf(path.join(folder, SECRETS), (root) => textOf(path.join(root, name))) : undefined
  const installation = installationOf(kind, folderText, flags, terminal.env, kept)
  const { folder, secrets } = installation
  const files = filesOf(installation)
  const names = [...files.keys(), ...[...secrets.keys()].map((name) => `${SECRETS}/${name}`)]
  const there = names.filter((name) => existsSync(path.join(folder, name)))
  if (there.length > 0 && flags.force !== true) {
    const more = there.length > 3 ? ` and ${there.length - 3} more` : ''
    throw invalidOption(
      `${folder} has ${there.slice(0, 3).join(', ')}${more} already; take another folder, or --force, which keeps secrets`,
    )
  }
  // Containers run as this user: to it belong secrets and what they write. Only root can give folders away, and needs to.
  const user = installation.kind === 'compose' ? installation.values.USER : undefined
  const isData = (name: string) => name.startsWith(`${DATA}/`)
  const data = [...files].filter(([name]) => isData(name))
  try {
    for (const [name, text] of files) if (!isData(name)) writeIn(folder, name, text, MODE)
    makeFolder(path.join(folder, SECRETS), user)
    asOwnerOf(path.join(folder, SECRETS), (root) => {
      chmodSync(root, SECRET_FOLDER_MODE)
      for (const [name, text] of secrets) writeIn(root, name, `${text.trim()}\n`, SECRET_MODE)
    })
    if (data.length > 0) makeFolder(path.join(folder, DATA), user)
    asOwnerOf(path.join(folder, DATA), (root) => {
      for (const [name, text] of data) writeIn(root, path.relative(DATA, name), text, MODE)
    })
  } catch (cause) {
    if (cause instanceof WebMQError) throw cause
    throw invalidOption(`cannot write ${folder}: ${codeOf(cause)}`, cause)
  }
  note(
    `wrote ${names.length} files to ${folder}; ${path.join(folder, 'README.md')} has the commands that start it`,
    terminal,
  )
}

/** The texts of an installation by their paths, without its secrets. */
function filesOf({ kind, broker, values }: Installation): ReadonlyMap<string, string> {
  const files = new Map<string, string>()
  const rulesOf = (name: string) => indented(readFileSync(path.join(DEPLOY, `prometheus/${name}.rules.yml`), 'utf8'))
  const rules = { RULES: rulesOf('webmq'), RABBITMQ_RULES: rulesOf('rabbitmq') }
  for (const layer of LAYERS[kind].flatMap((name) => [name, `${name}-${broker}`])) {
    const root = path.join(TEMPLATES, layer)
    for (const name of existsSync(root) ? filesIn(root) : []) {
      files.set(
        RENAMED.get(name) ?? name,
        filled(readFileSync(path.join(root, name), 'utf8'), { ...values, ...rules }, name),
      )
    }
  }
  for (const [to, from] of [...OF_DEPLOY[kind], ...(OF_DEPLOY_FOR[`${kind}-${broker}`] ?? [])]) {
    const root = path.join(DEPLOY, from)
    for (const name of statSync(root).isFile() ? [''] : filesIn(root))
      files.set(path.join(to, name), readFileSync(path.join(root, name), 'utf8'))
  }
  return files
}

/** A document of YAML as the value of a member, without its comments at the front. */
function indented(text: string): string {
  return text
    .slice(text.search(/^[^#]/m))
    .trimEnd()
    .replace(/^(?=.)/gm, '  ')
}

/** npm leaves out files named `.gitignore`, and pages of the repository are read by its tests as they are. */
const RENAMED: ReadonlyMap<string, string> = new Map([
  ['gitignore', '.gitignore'],
  ['README', 'README.md'],
])

function filesIn(root: string): readonly string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)))
}

/** Puts values for `@NAME@`; values may have such names, too. */
function filled(text: string, values: Values, file: string): string {
  return text.replace(/@([A-Z][A-Z_]*)@/g, (_, name: string) => {
    const value = values[name]
    if (value === undefined) throw new Error(`${file}: no value for @${name}@`)
    return filled(value, values, file)
  })
}

function textOf(file: string): string | undefined {
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined
}
