import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { WebMQError } from 'webmq-client/protocol'
import { invalidOption } from '../../../../kernel/base/invalid-option.js'
import { resolveOptions } from '../../../options/options.js'
import type { ResolvedOptions } from '../../../options/server-options.js'
import { readConfigFile } from '../../config-file.js'
import type { Kind } from '../../init/kinds.js'
import { mergeSources, readEnvironment } from '../../option-sources.js'

/** What `webmq-server init` has written, and its operator has changed. */
export interface ProductionFolder {
  readonly path: string
  readonly kind: Kind
  /** Of the server, as `jwt.audience` or else the proxy has it. */
  readonly host: string
  /** What nodes are started with; the last of several lines counts. */
  readonly unit: string
  readonly options: ResolvedOptions | undefined
  /** Why there are no options: a node would not start. */
  readonly defect: string | undefined
  /** The text of a file; empty when it is not there. */
  text(name: string): string
  secret(name: string): string
}

/** @throws {WebMQError} `E_OPTION_INVALID`: `init` has not written this folder. */
export function readFolder(given: string): ProductionFolder {
  const root = path.resolve(given)
  const has = (name: string) => existsSync(path.join(root, name))
  const text = (name: string) => (has(name) ? readFileSync(path.join(root, name), 'utf8') : '')
  const kind = has('systemd') ? 'systemd' : has('compose.yaml') ? 'compose' : has('values.yaml') ? 'helm' : undefined
  if (kind === undefined || !has('webmq.json'))
    throw invalidOption(`${root} is neither a URL nor a folder of webmq-server init`)
  const unit = UNITS[kind](text, root)
  const { options, defect } = optionsOf(unit, root)
  const [, site] =
    /^(?:https:\/\/)?([\w.-]+) \{/m.exec(text('Caddyfile')) ?? /^ {2}host: "?([\w.-]+)/m.exec(text('values.yaml')) ?? []
  return {
    path: root,
    kind,
    host: site ?? options?.jwt?.audience ?? 'localhost',
    unit,
    options,
    defect,
    text,
    secret: (name) => text(`secrets/${name}`).trim(),
  }
}

type ReadText = (name: string) => string

const UNITS: Readonly<Record<Kind, (text: ReadText, root: string) => string>> = {
  systemd: (text, root) => {
    const dropIns = path.join(root, 'systemd/webmq@.service.d')
    const more = existsSync(dropIns) ? readdirSync(dropIns).toSorted() : []
    return ['webmq@.service', ...more.map((name) => `webmq@.service.d/${name}`)]
      .map((name) => text(`systemd/${name}`))
      .join('\n')
  },
  compose: (text) => text('compose.yaml'),
  helm: (text) => `${text('chart/templates/deployment.yaml')}\n${text('chart/values.yaml')}\n${text('values.yaml')}`,
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

/** Seconds of `35s`, `35`; the last value of a key in a unit or in YAML. */
export function lastValueOf(unit: string, key: string): string | undefined {
  return [...unit.matchAll(new RegExp(`^\\s*${key}[=:] *"?([^"#\\n]*?)"?\\s*$`, 'gm'))].at(-1)?.[1]
}
