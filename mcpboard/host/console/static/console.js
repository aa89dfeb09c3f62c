// Tells when the polls of a page come to nothing: the page would otherwise look alive.
"use strict";

const lost = document.getElementById("lost");

for (const failure of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
  document.addEventListener(failure, () => { lost.hidden = false; });
}
document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.successful) {
    lost.hidden = true;
  }
});
