/** What goes over the wire. The hooks take the types of keys and payloads from here. */
declare module 'webmq-client' {
  interface Topics {
    'chat.*.message': { readonly from: string; readonly text: string; readonly atMs: number }
    'chat.*.typing': { readonly from: string }
  }
}

/** The data of a present member. */
export interface Guest {
  readonly name: string
}
