/* What is packed in the page: deflate as base64. */
function gradestackBytes(text) {
  if (Uint8Array.fromBase64) { return Uint8Array.fromBase64(text); }
  var letters = atob(text), bytes = new Uint8Array(letters.length);
  for (var place = 0; place < letters.length; place++) { bytes[place] = letters.charCodeAt(place); }
  return bytes;
}
function gradestackUnpacked(bytes) {
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")));
}
