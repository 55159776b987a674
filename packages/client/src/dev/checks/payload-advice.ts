/** What an app can do about a part of a payload that JSON cannot say. */
export function adviceFor(defect: string): string {
  if (/ is a (bigint|Map|Set)$/.test(defect)) return ': convert it, or use the codec of webmq-client/msgpack'
  return / is a Promise$/.test(defect) ? ': await it' : ''
}
