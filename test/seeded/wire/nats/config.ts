import type { NatsModelOptions } from './core.js'
import type { NatsUser, Permission } from './permissions.js'

type Value = string | number | readonly Value[] | Settings
interface Settings {
  readonly [name: string]: Value
}

/** What a model takes from a configuration file of nats-server. */
export interface NatsSettings {
  readonly options: Partial<NatsModelOptions>
  /** Where JetStream keeps its data. */
  readonly storeFolder: string | undefined
}

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g
/** Of no meaning to a model. */
const IGNORED = ['server_name', 'pid_file']

/** @throws {Error} for settings that the model does not have. */
export function natsSettingsOf(text: string): NatsSettings {
  const { max_payload, max_subscriptions, authorization, jetstream, ...rest } = settingsOf(text)
  const unknown = Object.keys(rest).filter((name) => !IGNORED.includes(name))
  if (unknown.length > 0) throw new Error(`the model of NATS does not have ${unknown.join(', ')}`)
  const options = {
    hasJetStream: jetstream !== undefined,
    users: authorization === undefined ? [] : usersOf(authorization as Settings),
    ...(max_payload === undefined ? {} : { maxPayloadBytes: Number(max_payload) }),
    ...(max_subscriptions === undefined ? {} : { maxSubscriptions: Number(max_subscriptions) }),
  }
  const folder = (jetstream as Settings | undefined)?.store_dir
  return { options, storeFolder: folder === undefined ? undefined : String(folder) }
}

function usersOf(authorization: Settings): readonly NatsUser[] {
  const { users = [authorization] } = authorization
  return (users as readonly Settings[]).map(({ user, password, token, nkey, permissions = {} }) => {
    if (nkey !== undefined) throw new Error('the model of NATS does not have nkeys')
    const { publish, subscribe } = permissions as Settings
    return {
      ...(user === undefined ? {} : { user: String(user) }),
      ...(password === undefined ? {} : { password: String(password) }),
      ...(token === undefined ? {} : { token: String(token) }),
      ...(publish === undefined ? {} : { publish: permissionOf(publish) }),
      ...(subscribe === undefined ? {} : { subscribe: permissionOf(subscribe) }),
    }
  })
}

function permissionOf(value: Value): Permission {
  if (typeof value === 'object' && !Array.isArray(value)) return value as Permission
  return { allow: [value].flat().map(String) }
}

function settingsOf(text: string): Settings {
  const tokens = text.match(TOKEN) ?? []
  let at = 0
  const readValue = (): Value => {
    const token = tokens[at++] ?? ''
    if (token === '{') return mapOf('}')
    if (token === '[') {
      const values: Value[] = []
      while (tokens[at] !== ']') tokens[at] === ',' ? at++ : values.push(readValue())
      at++
      return values
    }
    if (token.startsWith('"')) return JSON.parse(token) as string
    return /^\d+$/.test(token) ? Number(token) : token
  }
  const mapOf = (end: string | undefined): Settings => {
    const map: Record<string, Value> = {}
    while (tokens[at] !== end) {
      if (tokens[at] === ',') at++
      else {
        const name = tokens[at++] ?? ''
        if (tokens[at] === ':') at++
        map[name] = readValue()
      }
    }
    at++
    return map
  }
  return mapOf(undefined)
}
