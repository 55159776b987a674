import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { WebMQError } from 'webmq-client/protocol'
import { invalidOption } from '../../../../kernel/base/invalid-option.js'
import { codeOf } from '../../../../kernel/base/reason.js'
import { resolveOptions } from '../../../options/options.js'
import type { ResolvedOptions } from '../../../options/server-options.js'
import { readConfigFile } from '../../config-file.js'
import type { Kind } from '../../init/kinds.js'
import { mergeSources, readEnvironment } from '../../option-sources.js'
import { blocksOf, lastValueOf } from './read-value.js'

/** What `webmq-server init` has written, and its operator has changed. */
export interface ProductionFolder {
  readonly path: string
  readonly kind: Kind
  /** Of the server, as `jwt.audience` or else the proxy has it. */
  readonly host: string
  /** What each node is started with, or all of them are; the last of several lines counts. */
  readonly units: readonly string[]
  readonly options: ResolvedOptions | undefined
  /** Why there are no options: a node would not start. */
  readonly defect: string | undefined
  /** The text of a file; empty when none of an installation is there. @throws {WebMQError} `E_OPTION_INVALID`: it cannot be read. */
  text(name: string): string
  secret(name: string): string
}

/** @throws {WebMQError} `E_OPTION_INVALID`: `init` has not written this folder. */
export function readFolder(given: string): ProductionFolder {
  const root = path.resolve(given)
  const has = (name: string) => existsSync(path.join(root, name))
  const text = (name: string) => textOf(path.join(root, name))
  const kind = has('systemd') ? 'systemd' : has('compose.yaml') ? 'compose' : has('values.yaml') ? 'helm' : undefined
  if (kind === undefined || !has('webmq.json'))
    throw invalidOption(`${root} is neither a URL nor a folder of webmq-server init`)
  const units = UNITS[kind](text, root)
  const { options, defect } = optionsOf(units.join('\n'), root)
  const site = siteIn(text('Caddyfile')) ?? lastValueOf(blocksOf(text('values.yaml'), /^ingress:/).join('\n'), 'host')
  return {
    path: root,
    kind,
    host: site ?? options?.jwt?.audience ?? 'localhost',
    units,
    options,
    defect,
    text,
    secret: (name) => text(`secrets/${name}`).trim(),
  }
}

type ReadText = (name: string) => string

const UNITS: Readonly<Record<Kind, (text: ReadText, root: string) => readonly string[]>> = {
  systemd: (text, root) => {
    const dropIns = namesIn(path.join(root, 'systemd/webmq@.service.d')).filter((name) => name.endsWith('.conf'))
    const names = ['webmq@.service', ...dropIns.toSorted().map((name) => `webmq@.service.d/${name}`)]
    return [names.map((name) => text(`systemd/${name}`)).join('\n')]
  },
  compose: (text) => {
    const all = text('compose.yaml')
    const common = blocksOf(all, /^x-node:/).join('\n')
    const nodes = blocksOf(all, /^ {2}node-\d+:/).map((own) => `${common}\n${own}`)
    return nodes.length > 0 ? nodes : [all]
  },
  helm: (text) => [`${text('chart/templates/deployment.yaml')}\n${text('chart/values.yaml')}\n${text('values.yaml')}`],
}

/** The name under which the proxy serves the nodes. */
function siteIn(caddyfile: string): string | undefined {
  const sites = [...caddyfile.matchAll(/^(?:https:\/\/)?([\w.-]+) \{$/gm)].map(([, name]) => name)
  const blocks = blocksOf(caddyfile, /^(?:https:\/\/)?[\w.-]+ \{$/)
  return sites[blocks.findIndex((block) => ASKS_READY.test(block))] ?? sites[0]
}

/** How the proxy asks nodes, and nothing else. */
export const ASKS_READY = /^\s*health_uri \/ready$/m

/** Larger files are none of an installation. */
const MAX_FILE_BYTES = 16 * 1_048_576

function textOf(file: string): string {
  return reading(file, () => {
    const found = existsSync(file) ? statSync(file) : undefined
    return found?.isFile() && found.size <= MAX_FILE_BYTES ? readFileSync(file, 'utf8') : ''
  })
}

/** What a folder has; nothing when it is none. @throws {WebMQError} `E_OPTION_INVALID`: it cannot be read. */
export function namesIn(folder: string): readonly string[] {
  const isFolder = () => statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true
  return reading(folder, () => (isFolder() ? readdirSync(folder) : []))
}

function reading<T>(place: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    throw invalidOption(`cannot read ${place} (${codeOf(cause)}); run this as its owner`, cause)
  }
}

/** As a node would read them: its environment over `webmq.json`. Secrets are those of the folder. */
function optionsOf(unit: string, root: string): Pick<ProductionFolder, 'options' | 'defect'> {
  const env: Record<string, string> = {}
  const lines = unit.split('\n').filter((line) => !line.trimStart().startsWith('#'))
  for (const [, name = '', value = ''] of lines
    .join('\n')
    .matchAll(/(WEBMQ_\w+)(?:=|: *"?|, value: *"?)([^\s",}]+)/g)) {
    if (name === 'WEBMQ_CONFIG') continue
    env[name] = value.replaceAll('%i', '1').replace(/^(?:%d|\/run\/secrets(?:\/webmq)?)\//, `${root}/secrets/`)
  }
  try {
    // The file of defaults of the image.
    const files = ['webmq.json', 'image/defaults.json'].map((name) => path.join(root, name)).filter(existsSync)
    const sources = [readEnvironment(env), ...files.map((file) => readConfigFile(file))]
    return { options: resolveOptions(mergeSources(sources)), defect: undefined }
  } catch (error) {
    if (!(error instanceof WebMQError)) throw error
    return { options: undefined, defect: error.message }
  }
}
