import { isJson } from '../../../kernel/base/parse-json.js'

/** The payload of a message as members of an event: JSON as it is, anything else in base64. Begins with a comma. */
export function payloadMembers(payload: Uint8Array, isBinary: boolean): string {
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
  if (!isBinary) {
    const text = bytes.toString('utf8')
    if (isJson(text)) return `,"payload":${text}`
  }
  return `,"base64":"${bytes.toString('base64')}"`
}

/** The data of a presence member as a member of an event. Text that is not JSON is left out: the server refuses it next. */
export function dataMember(data: string | undefined): string {
  return data !== undefined && isJson(data) ? `,"data":${data}` : ''
}

/** An event with further members, which are JSON already and begin with a comma. Members that are `undefined` are left out. */
export function eventJson(members: object, more = ''): string {
  return `${JSON.stringify(members).slice(0, -1)}${more}}`
}
