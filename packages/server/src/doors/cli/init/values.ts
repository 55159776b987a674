import { randomBytes } from 'node:crypto'
import { isIP } from 'node:net'
import path from 'node:path'
import { DOCS_URL, didYouMean } from 'webmq-client/protocol'
import { invalidOption } from '../../../kernel/base/invalid-option.js'
import { isOriginPattern } from '../../../kernel/identity/origin.js'
import { VERSION } from '../../../kernel/node/version.js'
import { readTextFile } from '../option-sources.js'
import { INSTALL as INSTALL_OF_TRACES } from '../send-traces.js'
import { BROKER_SPECS, BROKERS, type BrokerName } from './brokers.js'
import { KINDS, type Kind, type Values } from './kinds.js'
import { linesOf, wordOfCommand } from './lines.js'

export interface InitFlags {
  readonly host: string
  readonly broker: string
  readonly origin?: readonly string[]
  readonly cert?: string
  readonly key?: string
  readonly alerts?: string
  readonly traces?: string
  readonly image?: string
  readonly force?: true
}

export interface Installation {
  readonly kind: Kind
  readonly broker: BrokerName
  /** Absolute. */
  readonly folder: string
  readonly values: Values
  /** By their names in `secrets/`. */
  readonly secrets: ReadonlyMap<string, string>
}

const MAX_HOST_CHARS = 253
const HOST = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
/** 256 bits, as long as the hash of HS256. */
const SECRET_BYTES = 32

/** Where the programs of an installation reach each other. */
const PLACES: Readonly<Record<Kind, Values>> = {
  systemd: {
    NODES: '127.0.0.1:8081 127.0.0.1:8082 127.0.0.1:8083',
    NODE_METRICS: '"127.0.0.1:9101", "127.0.0.1:9102", "127.0.0.1:9103"',
    RABBITMQ_METRICS: '"127.0.0.1:15691", "127.0.0.1:15692", "127.0.0.1:15693"',
    PROMETHEUS: '127.0.0.1:9090',
    ALERTMANAGER: '127.0.0.1:9093',
  },
  compose: {
    NODES: 'node-1:8080 node-2:8080 node-3:8080',
    NODE_METRICS: '"node-1:9090", "node-2:9090", "node-3:9090"',
    RABBITMQ_METRICS: '"broker-1:15692", "broker-2:15692", "broker-3:15692"',
    PROMETHEUS: 'prometheus:9090',
    ALERTMANAGER: 'alertmanager:9093',
  },
  helm: {},
}

/** @throws {WebMQError} `E_OPTION_INVALID`: what was given makes no installation. */
export function installationOf(
  kindText: string,
  folderText: string,
  flags: InitFlags,
  env: NodeJS.ProcessEnv,
  kept: (name: string, folder: string) => string | undefined,
): Installation {
  const kind = oneOf('init', kindText, KINDS)
  const broker = oneOf('--broker', flags.broker, BROKERS)
  const spec = BROKER_SPECS[broker]
  const host = checkedHost(flags.host)
  const folder = checkedFolder(folderText, kind)
  const origins = flags.origin ?? [`https://${host}`]
  for (const origin of origins) {
    if (!isOriginPattern(origin) || origin === '*')
      throw invalidOption(`--origin: ${JSON.stringify(origin)} is not an origin, such as https://app.example.org`)
  }
  const certificate = certificateOf(flags)
  const alerts = urlOf('--alerts', flags.alerts)
  const traces = urlOf('--traces', flags.traces)
  const secret = (name: string) => kept(name, folder)?.trim() ?? randomBytes(SECRET_BYTES).toString('base64url')
  const password = checkedPassword(secret('broker-password'))
  const prefix = env.npm_config_global_prefix || path.resolve(process.execPath, '../..')
  return {
    kind,
    broker,
    folder,
    values: {
      ...PLACES[kind],
      HOST: host,
      FOLDER: folder,
      VERSION,
      DOCS_URL,
      BROKER: broker,
      BROKER_TITLE: spec.title,
      COMMAND: [process.execPath, `${prefix}/lib/node_modules/webmq-server/bin/webmq-server.js`]
        .map(wordOfCommand)
        .join(' '),
      ORIGINS: JSON.stringify(origins),
      IMAGE: checkedImage(flags.image ?? 'webmq-server'),
      TRACES_INSTALL: INSTALL_OF_TRACES,
      USER: ownerOf(),
      ...spec.values,
      BROKER_SERVERS: (spec.servers?.(kind) ?? [])
        .map((server, index) => `cluster_formation.classic_config.nodes.${index + 1} = ${server}`)
        .join('\n'),
      ...linesOf(kind, { hasCertificate: certificate !== undefined, alerts, traces }),
    },
    secrets: new Map([
      ['broker-password', password],
      ['broker', spec.address(password, kind)],
      ...spec.secrets(password, kind),
      ...[...(spec.ownSecrets ?? []), 'jwt-secret', 'api-key', 'grafana-password'].map(
        (name) => [name, secret(name)] as const,
      ),
      ...(certificate ?? []),
    ]),
  }
}

function oneOf<T extends string>(label: string, text: string, names: readonly T[]): T {
  const name = names.find((each) => each === text)
  if (name !== undefined) return name
  throw invalidOption(`${label}: ${JSON.stringify(text)} is not one of ${names.join(', ')}${didYouMean(text, names)}`)
}

function checkedHost(text: string): string {
  const host = text.toLowerCase()
  if (HOST.test(host) && isIP(host) === 0 && host.length <= MAX_HOST_CHARS) return host
  const hint = text.includes('/')
    ? '; write it without scheme and path'
    : isIP(text) > 0
      ? '; certificates are for names'
      : ''
  throw invalidOption(`--host: ${JSON.stringify(text)} is not a host name, such as chat.example.org${hint}`)
}

/** It stands in YAML, and in a command of the README. */
function checkedImage(image: string): string {
  if (/^\w[\w.-]*(:\d+)?(\/\w[\w.-]*)*$/.test(image)) return image
  throw invalidOption(
    `--image: ${JSON.stringify(image)} is not the name of an image, such as registry.example.org/webmq`,
  )
}

/** It stands in a URL and in files of brokers, each with other quotes. The one that `init` makes needs none. */
function checkedPassword(text: string): string {
  if (/^[\w.~-]+$/.test(text)) return text
  throw invalidOption('secrets/broker-password: a password here is of letters, digits and . _ ~ -')
}

/** Units name the folder, so its path needs no quotes there, and services must see it. */
function checkedFolder(text: string, kind: Kind): string {
  const folder = path.resolve(text)
  if (kind !== 'systemd') return folder
  if (!/^[\w./+-]+$/.test(folder))
    throw invalidOption(
      `${folder}: a path in a unit of systemd has only letters, digits and . _ + - /; take /etc/webmq`,
    )
  if (/^\/(home|root|run\/user)(\/|$)/.test(folder))
    throw invalidOption(`${folder}: the services see no home (ProtectHome); take /etc/webmq`)
  return folder
}

function certificateOf({ cert, key }: InitFlags): readonly (readonly [string, string])[] | undefined {
  if (cert === undefined && key === undefined) return undefined
  if (cert === undefined || key === undefined) throw invalidOption('--cert and --key: give both, or neither')
  const files = [
    ['tls.crt', cert, '--cert', 'CERTIFICATE'],
    ['tls.key', key, '--key', 'PRIVATE KEY'],
  ] as const
  return files.map(([name, file, flag, label]) => {
    const text = readTextFile(file, flag)
    if (!text.includes(`${label}-----`))
      throw invalidOption(`${flag}: ${file} is not PEM with a ${label.toLowerCase()}`)
    return [name, text]
  })
}

/** @throws {WebMQError} `E_OPTION_INVALID`. */
function urlOf(flag: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const url = URL.canParse(text) ? new URL(text) : undefined
  // What no URL has by itself, a space or a quote, would end it in the files.
  if (url !== undefined && /^https?:$/.test(url.protocol)) return /^[!#-[\]-~]+$/.test(text) ? text : url.href
  throw invalidOption(`${flag}: ${JSON.stringify(text)} is not a URL with http:// or https://`)
}

/** Whose containers and files are: of who runs this, but never of root. */
const NOT_ROOT = 1000

function ownerOf(): string {
  const uid = process.getuid?.() ?? NOT_ROOT
  return uid === 0 ? `${NOT_ROOT}:${NOT_ROOT}` : `${uid}:${process.getgid?.() ?? uid}`
}
