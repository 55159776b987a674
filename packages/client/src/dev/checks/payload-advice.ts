/** What an app can do about a part of a payload that JSON cannot say. */
export function adviceFor(defect: string): string {
  if (/ is a bigint$/.test(defect)) return ': convert it, or use the codec of webmq-client/msgpack'
  if (/ is a (Map|Set)$/.test(defect)) return ': convert it to an object or an array'
  return / is a Promise$/.test(defect) ? ': await it' : ''
}
